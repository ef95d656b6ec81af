"""What ``robustphase fit`` leaves: the result of one signal or of several, the report, a table of bad samples, and a few lines.

All but the lines for the terminal are files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import robustphase as rp
from robustphase.atomic import writing
from robustphase.cli.app import Failure, command_line, sentence, warnings_said
from robustphase.cli.fit_request import FitRequest
from robustphase.cli.outputs import note_written
from robustphase.cli.terminal import screen, shown
from robustphase.estimator import CurvedNoise
from robustphase.estimator.certifying import certified_levels
from robustphase.files import StoredSamples
from robustphase.formatting import number
from robustphase.report import FitDiagnostics, ManyDiagnostics, save_result, write_report

Array = NDArray[Any]

#: The columns for one signal; for several, that of the signal stands after the sample.
COLUMNS = ("sample", "response", "predicted", "residual", "weight", "covariate_weight")


def keep_result(
    asked: FitRequest,
    model: rp.RobustPhaseRetrieval,
    rows: rp.rows.RowSource,
    samples: StoredSamples,
    responses: Array,
) -> FitDiagnostics | ManyDiagnostics:
    """Write the result, with what a report shows of it."""
    diagnostics: FitDiagnostics | ManyDiagnostics
    shape = samples.pattern_shape
    picture = asked.image_shape or ((shape[0], shape[1]) if len(shape) == 2 else None)
    with screen().watching("looking back", lambda: "what was rejected and why"):
        if responses.ndim == 2:
            diagnostics = ManyDiagnostics.of(
                model, rows, responses, image_shape=picture, frame_shape=samples.frame_shape
            )
        else:
            diagnostics = FitDiagnostics.of(
                model,
                rows,
                responses,
                truth=samples.truth,
                image_shape=picture,
                detector_shape=asked.detector_shape,
            )
    diagnostics = diagnostics.from_where(shown(asked.data), command=command_line(), message=warnings_said())
    save_result(asked.result, diagnostics)
    return diagnostics


def keep_report(report: Path, diagnostics: FitDiagnostics | ManyDiagnostics, out: Path) -> None:
    """Write the report; a failure leaves the result as it is."""
    try:
        write_report(report, diagnostics)
    except Exception as error:
        raise Failure(f"the report was not written: {sentence(error)} The result is safe in {shown(out)}.") from error
    note_written(report)


def write_flagged(path: Path, diagnostics: FitDiagnostics | ManyDiagnostics) -> int:
    """Write the bad samples, in their order, and return how many there are; samples and signals count from 0."""
    if isinstance(diagnostics, ManyDiagnostics):
        return _write_flagged_of_many(path, diagnostics)
    flagged = np.flatnonzero(diagnostics.rejected)
    columns = (
        diagnostics.responses,
        diagnostics.predictions,
        diagnostics.residuals,
        diagnostics.weights,
        diagnostics.covariate_weights,
    )
    _write(path, COLUMNS, ([int(row), *(float(values[row]) for values in columns)] for row in flagged))
    return int(flagged.size)


def _write_flagged_of_many(path: Path, many: ManyDiagnostics) -> int:
    """One line for every bad reading."""
    samples, signals = np.nonzero(many.flagged)
    columns = (
        many.flagged_responses,
        many.flagged_predictions,
        many.flagged_responses - many.flagged_predictions,
        many.weights[many.flagged],
        many.flagged_covariate_weights,
    )
    lines = ([int(row), int(k), *values] for row, k, *values in zip(samples, signals, *columns, strict=True))
    _write(path, (COLUMNS[0], "signal", *COLUMNS[1:]), ([*line[:2], *map(float, line[2:])] for line in lines))
    return int(samples.size)


def _write(path: Path, names: tuple[str, ...], lines: Iterator[list[Any]]) -> None:
    with writing(path) as handle:
        text = io.TextIOWrapper(handle, encoding="ascii", newline="")
        table = csv.writer(text, lineterminator="\n")
        table.writerow(names)
        table.writerows(lines)
        text.detach()
    note_written(path)


#: Bad groups, or signals that did not converge, that are named.
MOST_NAMED = 8


def facts_of_one(model: rp.RobustPhaseRetrieval, diagnostics: FitDiagnostics) -> list[tuple[str, str]]:
    """What was found of one signal."""
    flagged = model.flag_samples()
    last = model.history_[-1]
    facts = [
        ("answer", "converged" if model.converged_ else "did not converge: see the warning"),
        (
            "contamination",
            f"{number(model.contamination_)} ({'found' if model.contamination == 'auto' else 'assumed'})",
        ),
        ("samples treated as bad", f"{int(flagged.sum())} of {flagged.size} ({flagged.mean():.1%})"),
        ("noise scale", number(model.noise_scale_)),
        ("certificate", _certificate(model)),
        ("cost", f"{last.passes} passes over the data, {last.seconds:.1f} s"),
    ]
    if isinstance(model.noise_model_, CurvedNoise):
        facts.insert(4, ("noise", _noise_law(model.noise_model_, model.noise_mean_)))
    if hasattr(model, "group_weights_"):
        facts.insert(3, ("groups treated as bad", _bad_groups(model)))
    if model.noise_mean == "unknown":
        facts.insert(3, ("background", number(model.noise_mean_)))
    if diagnostics.true_error is not None:
        facts.insert(1, ("error", f"{diagnostics.true_error:.2%} of the signal, judged by the truth in the file"))
    facts += [
        (
            "model check",
            f"{check.name} {'fails' if check.severe else 'is off'}: {check.figure:.3g}, limit {check.threshold:.3g}",
        )
        for one in model_checks(model)
        for check in one.failed
    ]
    return facts


def facts_of_many(model: rp.RobustPhaseRetrieval) -> list[tuple[str, str]]:
    """What was found of several."""
    converged, levels = np.asarray(model.converged_), np.asarray(model.contamination_)
    bad_rows, flagged = model.row_weights_ < 0.5, model.flag_samples()
    certificates = np.asarray(model.certificate_)
    last = model.history_[-1]
    facts = [
        ("answers", f"{int(converged.sum())} of {converged.size} signals converged"),
        ("contamination", f"{number(float(np.median(levels)))} in the median, {number(float(levels.max()))} at most"),
        ("readings treated as bad", f"{int(flagged.sum())} of {flagged.size} ({flagged.mean():.1%})"),
        ("samples bad for all signals", f"{int(bad_rows.sum())} of {bad_rows.size} ({bad_rows.mean():.1%})"),
        ("noise scale", f"{number(float(np.median(model.noise_scale_)))} in the median"),
        ("certificate", f"{int((certificates < 1).sum())} of {certificates.size} signals have one"),
        ("cost", f"{last.passes} passes over the data, {last.seconds:.1f} s"),
    ]
    left = np.flatnonzero(~converged)
    if left.size:
        more = ", …" if left.size > MOST_NAMED else ""
        facts.insert(1, ("did not converge", f"signals {', '.join(map(str, left[:MOST_NAMED]))}{more}"))
    return facts


def _bad_groups(model: rp.RobustPhaseRetrieval) -> str:
    """How many groups, and the first of them."""
    flags, names = model.flag_groups(), model.groups_
    columns = list(zip(names, flags, strict=True)) if isinstance(flags, tuple) else [(names, flags)]
    parts = []
    for labels, bad in columns:
        first = [str(label) for label in labels[bad][:MOST_NAMED]]
        more = ", …" if bad.sum() > MOST_NAMED else ""
        parts.append(f"{int(bad.sum())} of {bad.size}" + (f" ({', '.join(first)}{more})" if first else ""))
    return "; ".join(parts)


def model_checks(model: rp.RobustPhaseRetrieval) -> tuple[Any, ...]:
    """The test of each signal's model."""
    checks = model.model_check_
    return checks if isinstance(checks, tuple) else (checks,)


def _noise_law(noise: CurvedNoise, background: float) -> str:
    """The law of the readings in a few words."""
    if noise.kind == "poisson":
        return f"counts, dark {number(background)}"
    read, shot, relative = (number(float(part)) for part in (noise.read, noise.shot, noise.relative))
    return f"variance {read} + {shot} e + {relative} e², e = |a·x|²"


def _certificate(model: rp.RobustPhaseRetrieval) -> str:
    """What the certificate says, and under which condition."""
    if not model.certificate_ < 1:
        return "none: with so few samples, robust gradients alone cannot vouch for the answer"
    level = float(certified_levels(model.contamination, model.contamination_))
    return (
        f"the error is at most {model.certificate_:.1%} of the signal, "
        f"if no more than {level:.1%} of the samples are bad"
    )
