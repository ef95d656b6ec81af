"""``robustphase fit``: from a file of samples to a signal, a weight for every sample, and a report."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

import robustphase as rp
from robustphase.atomic import STALE, sweep_leftovers
from robustphase.cli.app import (
    MODEL_FAILS,
    UNSETTLED,
    Failure,
    as_command,
    as_request,
    command_line,
    general_options,
    option,
    sentence,
    warnings_said,
)
from robustphase.cli.flagged import write_flagged, write_flagged_of_many
from robustphase.cli.many import facts_of, save_many
from robustphase.cli.outputs import check_distinct, check_new, check_outside, check_writable, note_written, written
from robustphase.cli.terminal import Screen, screen, shown
from robustphase.cli.values import (
    FIELDS,
    LAWS,
    MEAN_ESTIMATORS,
    NOISE_MEANS,
    NONFINITE,
    STEPS,
    TRANSPOSE,
    ImageShape,
    Level,
    NumberOrFile,
    Start,
)
from robustphase.estimator import CurvedNoise
from robustphase.estimator.progress import FEW_PASSES, say_left, seconds_left, usual_passes
from robustphase.files import (
    DataError,
    StoredSamples,
    available_memory,
    checkpoint_needed,
    checkpointed,
    memory_needed,
    open_samples,
    read_values,
)
from robustphase.files.checkpoint import MOST_WAITING, PROBLEM
from robustphase.formatting import in_bytes, number
from robustphase.report import FitDiagnostics, require_report, save_result, write_report

INPUT, ASSUME, HOW, OUTPUT, LONG = "Input", "What to assume", "How to compute", "Output", "Long runs"
#: Covariates of fewer bytes are fitted before anybody has read an estimate: 256 MiB.
LONG_RUN = 256 << 20
#: Bad groups that are named.
MOST_NAMED = 8


@dataclass(frozen=True)
class FitRequest:
    """What ``robustphase fit`` is asked for; ``settings`` are the arguments of the estimator that have the same name."""

    data: Path
    responses: Path | None
    covariates_name: str | None
    responses_name: str | None
    transpose: str | None
    column: int | None
    groups: Path | None
    saturation: float | Path | None
    background: Path | None
    drift: bool
    init: str | Path
    no_polish: bool
    seed: int
    out: Path | None
    report: Path | None
    flagged: Path | None
    image_shape: tuple[int, int] | None
    checkpoint: Path | None
    resume: bool
    checkpoint_every: float
    keep_checkpoint: bool
    overwrite: bool
    settings: dict[str, Any]

    @property
    def result(self) -> Path:
        """Where the result goes."""
        return Path(f"{self.data.stem}-result.npz") if self.out is None else self.out

    @property
    def folder(self) -> Path | None:
        """Where the checkpoint goes, if there is to be one."""
        return self.result.with_suffix(".checkpoint") if self.resume and self.checkpoint is None else self.checkpoint

    def check_outputs(self) -> None:
        """Refuse to write over the data or twice to one place, or where nothing can be written."""
        outputs = {
            "--out": self.result,
            "--report": self.report,
            "--flagged": self.flagged,
            "--checkpoint": self.folder,
        }
        inputs: dict[str, Any] = {
            "DATA": self.data,
            "--responses": self.responses,
            "--init": self.init,
            "--groups": self.groups,
            "--saturation": self.saturation,
            "--background": self.background,
        }
        for name, path in inputs.items():
            if isinstance(path, Path):
                check_distinct(**{name: path, **outputs})
                check_outside(path, **outputs)
        if self.report is not None:
            require_report()  # before the hours of a fit, not after them
        for path in (self.result, self.report, self.flagged):
            if path is not None:
                check_writable(path)
                check_new(path, overwrite=self.overwrite or self._goes_on())

    def _goes_on(self) -> bool:
        """Whether an earlier run of this command was cut off: what it has written is its own, and is written again."""
        return self.resume and self.folder is not None and (self.folder / PROBLEM).is_file()

    def responses_of(self, samples: StoredSamples) -> np.ndarray[Any, Any]:
        """The responses to fit: all, or one column of them."""
        if self.column is None:
            if samples.responses.ndim == 2 and self.report is not None:
                raise click.UsageError(
                    f"--report shows one signal, and the responses are those of {samples.responses.shape[1]}; choose one of them "
                    "with --column, or leave out --report."
                )
            return samples.responses
        columns = samples.responses.reshape(len(samples.responses), -1)
        if self.column >= columns.shape[1]:
            raise click.UsageError(
                f"--column {self.column}: the responses have {columns.shape[1]} columns, the first of which is 0."
            )
        return np.ascontiguousarray(columns[:, self.column])

    def model(self, count: int) -> rp.RobustPhaseRetrieval:
        """The estimator, not fitted, for so many samples."""
        start = _read_start(self.init) if isinstance(self.init, Path) else self.init
        whiten = "auto" if self.settings["whiten"] is None else self.settings["whiten"]
        limits = read_values(self.saturation, count) if isinstance(self.saturation, Path) else self.saturation
        settings = self.settings | {
            "whiten": whiten,
            "saturation": limits,
            "background": None if self.background is None else read_values(self.background, count),
            "drift": "auto" if self.drift else None,
        }
        return rp.RobustPhaseRetrieval(init=start, polish=not self.no_polish, random_state=self.seed, **settings)


@as_command(
    "fit",
    notes="Exit codes: 0 converged, 3 finished without converging, 4 finished but the data contradict the model (in both cases "
    "the files are written), 2 bad usage, 1 error, 130 interrupted.",
    example="""
robustphase simulate data.npz --attack leverage --noise-mean 3
robustphase fit data.npz --contamination 0.1 --noise-mean unknown --out result.npz --report report.html
""",
)
@click.argument("data", metavar="DATA", type=click.Path(path_type=Path))
@option(
    INPUT,
    "--responses",
    metavar="Y.npy",
    type=click.Path(path_type=Path),
    help="File of any kind with the responses, if DATA holds the covariates alone.",
)
@option(INPUT, "--covariates-name", metavar="NAME", help="Name of the covariates in DATA, if it is not found.")
@option(INPUT, "--responses-name", metavar="NAME", help="Name of the responses in DATA, if it is not found.")
@option(
    INPUT,
    "--transpose",
    type=click.Choice(TRANSPOSE),
    help="What has its samples in the last axis and not in the first, such as one sensing vector in every column.",
)
@option(
    INPUT,
    "--column",
    type=click.IntRange(min=0),
    metavar="K",
    help="Of responses for several signals (samples x signals, or frames), fit this one alone; the first is 0.",
)
@option(
    INPUT,
    "--groups",
    metavar="LABELS.npy",
    type=click.Path(path_type=Path),
    help="File with one label per sample, or several: samples with the same label are good or bad together.",
)
@option(
    ASSUME,
    "--contamination",
    type=Level(auto=True),
    default=0.1,
    help="Share of the samples that may be bad. Too much costs accuracy, too little costs safety; auto finds it.",
)
@option(
    ASSUME,
    "--noise-mean",
    type=click.Choice(NOISE_MEANS),
    default="zero",
    help="Whether a constant background may be added to every response.",
)
@option(
    ASSUME,
    "--noise",
    type=click.Choice(LAWS),
    default="auto",
    help="Law of the noise: the same for all samples, counts of photons, or found from the data.",
)
@option(
    ASSUME,
    "--saturation",
    type=NumberOrFile(),
    help="Responses at or above it are censored: they say 'at least that'.",
)
@option(
    ASSUME,
    "--background",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the known part of every response that is not the signal's, such as a dark frame.",
)
@option(
    ASSUME,
    "--drift",
    is_flag=True,
    show_default=False,
    help="Gain and background may drift slowly over the samples, which stand in the order of reading.",
)
@option(
    ASSUME,
    "--field",
    type=click.Choice(FIELDS),
    default="auto",
    help="Where the signal lives; auto follows the type of the covariates. A complex signal may stand behind real patterns.",
)
@option(
    ASSUME,
    "--whiten/--no-whiten",
    default=None,
    show_default=False,
    help="Always or never standardise scale, mean and covariance of the covariates. Default: where they need it.",
)
@option(
    ASSUME,
    "--nonfinite",
    type=click.Choice(NONFINITE),
    default="raise",
    help="Samples with NaN or infinities: refuse the data, or count them as bad.",
)
@option(
    ASSUME,
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="NUMBER",
    default=0.01,
    help="Confidence parameter of the theorems.",
)
@option(HOW, "--init", type=Start(), default="auto", help="Where to start; mean and covariance are the paper's.")
@option(
    HOW,
    "--mean-estimator",
    type=click.Choice(MEAN_ESTIMATORS),
    default="filter",
    help="Robust mean of gradients.",
)
@option(
    HOW,
    "--step",
    type=click.Choice(STEPS),
    default="newton",
    help="The default engine, or the constant steps of the paper's Algorithms 2 and 4.",
)
@option(
    HOW,
    "--batches",
    type=click.IntRange(min=1),
    metavar="COUNT",
    default=1,
    help="Split the samples into this many fresh batches, one step on each, as the theory asks.",
)
@option(HOW, "--no-polish", is_flag=True, show_default=False, help="Leave out the refinement after the descent.")
@option(HOW, "--max-iter", type=click.IntRange(min=1), metavar="COUNT", default=50, help="Most steps of a descent.")
@option(
    HOW,
    "--tol",
    type=click.FloatRange(min=0),
    metavar="NUMBER",
    default=1e-6,
    help="Stop a descent when a step is shorter than this fraction of the signal.",
)
@option(
    HOW,
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    metavar="SEED",
    default=0,
    help="Seed of first guesses and subsamples; the same seed gives the same answer.",
)
@option(
    OUTPUT,
    "--out",
    metavar="RESULT.npz",
    type=click.Path(path_type=Path),
    help="Where the result goes. Default: the name of DATA with -result.npz at its end, in the current folder.",
)
@option(
    OUTPUT,
    "--report",
    metavar="REPORT.html",
    type=click.Path(path_type=Path),
    help="Write a report to look at: one file that needs no network.",
)
@option(
    OUTPUT,
    "--flagged",
    metavar="BAD.csv",
    type=click.Path(path_type=Path),
    help="Write the samples that were treated as bad to a table.",
)
@option(
    OUTPUT,
    "--overwrite",
    is_flag=True,
    show_default=False,
    help="Write over a result or report that is there already.",
)
@option(OUTPUT, "--image-shape", type=ImageShape(), help="The signal is a picture of this height and width.")
@option(
    LONG,
    "--checkpoint",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Keep what has been computed in a folder, so that the run can go on after a kill.",
)
@option(
    LONG,
    "--resume",
    is_flag=True,
    show_default=False,
    help="Go on from the checkpoint, or begin one if there is none. Its folder, if not given, is called after the result.",
)
@option(
    LONG,
    "--checkpoint-every",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=30,
    help="Time between writes, of which a kill loses the last at most.",
)
@option(
    LONG,
    "--keep-checkpoint",
    is_flag=True,
    show_default=False,
    help="Leave the checkpoint in place when the result is written.",
)
@general_options
def fit(**options: Any) -> None:
    """Recover a signal from a file of covariates and responses.

    DATA is an .npz, MATLAB (.mat), HDF5 (.h5, .hdf5), .csv, .parquet or .zarr file that holds covariates A, one sample per row or
    one pattern per sample, and responses y; or a .npy or .tif file with the covariates, beside --responses. The responses are
    squared magnitudes, y = (a·x)² plus noise; up to the share given by --contamination of the samples may be wrong in any way.
    Responses with several columns, or frames, are those of as many signals.
    """
    asked = as_request(FitRequest, options)
    asked.check_outputs()
    out, see = asked.result, screen()
    names = {
        "covariates_name": asked.covariates_name,
        "responses_name": asked.responses_name,
        "transpose": asked.transpose,
    }
    with open_samples(asked.data, asked.responses, **names) as samples:
        stored = rp.rows.as_source(samples.covariates)
        _check_image(asked.image_shape, stored.shape[1])
        responses = asked.responses_of(samples)
        model = asked.model(stored.shape[0])
        labels = None if asked.groups is None else _read_labels(asked.groups)
        see.say(f"{shown(asked.data)}: {samples.description}")
        say_costs(see, model, stored, asked.folder)
        with _kept(asked, _settings(model, labels), stored, responses) as rows:
            # With a checkpoint nobody else can be writing: its folder is locked.
            sweep_leftovers(out, older_than=0.0 if asked.resume else STALE)
            progress = Progress(model, rows)
            with see.watching("fitting", progress.state, progress.left):
                model.fit(rows, responses, groups=labels)
            diagnostics = _keep(asked, model, rows, samples, responses)
            note_written(out)
        if asked.flagged is not None:
            if diagnostics is None:
                count = write_flagged_of_many(asked.flagged, model, stored, responses)
            else:
                count = write_flagged(asked.flagged, diagnostics)
    if diagnostics is None:
        see.facts(facts_of(model))
    else:
        _summarise(see, model, diagnostics)
    see.say(f"result: {shown(out)}")
    if asked.flagged is not None:
        see.say(f"{count} samples treated as bad: {shown(asked.flagged)}")
    if asked.report is not None and diagnostics is not None:
        _write_report(asked.report, diagnostics, out)
        see.say(f"report: {shown(asked.report)}")
    if any(check.severe for check in _model_checks(model)):
        click.get_current_context().exit(MODEL_FAILS)
    if not np.all(model.converged_):
        click.get_current_context().exit(UNSETTLED)


def _keep(
    asked: FitRequest,
    model: rp.RobustPhaseRetrieval,
    rows: rp.rows.RowSource,
    samples: StoredSamples,
    responses: np.ndarray[Any, Any],
) -> FitDiagnostics | None:
    """Write the result; of one signal also what a report shows of it."""
    if responses.ndim == 2:
        save_many(asked.result, model, samples, command_line())
        return None
    with screen().watching("looking back", lambda: "what was rejected and why"):
        diagnostics = _diagnostics(asked, model, rows, samples, responses)
    save_result(asked.result, diagnostics)
    return diagnostics


@contextmanager
def _kept(
    asked: FitRequest, settings: dict[str, Any], rows: rp.rows.RowSource, responses: np.ndarray[Any, Any]
) -> Iterator[rp.rows.RowSource]:
    """The rows, with their passes kept in a folder if there is one; an interruption says how to go on."""
    folder = asked.folder
    if folder is None:
        try:
            yield rows
        except KeyboardInterrupt as stop:
            if written():
                raise
            raise KeyboardInterrupt(
                f"nothing was written; a run that can go on where it was interrupted: {command_line()} --resume"
            ) from stop
        return
    every, resume, keep = asked.checkpoint_every, asked.resume, asked.keep_checkpoint
    try:
        with checkpointed(folder, settings, rows, responses, interval=every, resume=resume, keep=keep) as remembered:
            yield remembered
    except KeyboardInterrupt as stop:
        if written():
            raise
        again = command_line() if resume else f"{command_line()} --resume"
        raise KeyboardInterrupt(f"the passes so far are in {shown(folder)}; to go on: {again}") from stop


def _check_image(shape: tuple[int, int] | None, unknowns: int) -> None:
    if shape is not None and shape[0] * shape[1] != unknowns:
        raise click.UsageError(
            f"--image-shape {shape[0]}x{shape[1]} has {shape[0] * shape[1]} pixels, but the covariates have {unknowns} "
            "columns, one per pixel."
        )


def _read_start(path: Path) -> np.ndarray[Any, Any]:
    """The starting point in a ``.npy`` file."""
    try:
        start = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(
            f"cannot read a starting point from {shown(path)}: it is not a .npy file of numbers."
        ) from error
    return np.asarray(start)


def _settings(model: rp.RobustPhaseRetrieval, labels: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    """What a checkpoint must have been made with: the parameters, and the labels of groups if there are any."""
    settings: dict[str, Any] = model.get_params(deep=False)
    if labels is not None:
        settings["groups"] = hashlib.sha256(np.ascontiguousarray(labels).tobytes()).hexdigest()
    return settings


def _read_labels(path: Path) -> np.ndarray[Any, Any]:
    """The labels in a ``.npy`` file."""
    try:
        labels = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(
            f"cannot read labels from {shown(path)}: it is not a .npy file of numbers or strings."
        ) from error
    if not isinstance(labels, np.ndarray):
        labels.close()
        raise DataError(
            f"cannot read labels from {shown(path)}: it may hold several arrays. Save the labels alone: .npy."
        )
    return labels


def _diagnostics(
    asked: FitRequest,
    model: rp.RobustPhaseRetrieval,
    rows: rp.rows.RowSource,
    samples: StoredSamples,
    responses: np.ndarray[Any, Any],
) -> FitDiagnostics:
    shape = samples.pattern_shape
    return FitDiagnostics.of(
        model,
        rows,
        responses,
        data_name=shown(asked.data),
        command=command_line(),
        truth=samples.truth,
        image_shape=asked.image_shape or ((shape[0], shape[1]) if len(shape) == 2 else None),
        message=warnings_said(),
    )


def _write_report(report: Path, diagnostics: FitDiagnostics, out: Path) -> None:
    try:
        write_report(report, diagnostics)
    except Exception as error:
        raise Failure(f"the report was not written: {sentence(error)} The result is safe in {shown(out)}.") from error
    note_written(report)


def _noise_law(noise: CurvedNoise, background: float) -> str:
    """The law of the readings in a few words."""
    if noise.kind == "poisson":
        return f"counts, dark {number(background)}"
    read, shot, relative = (number(float(part)) for part in (noise.read, noise.shot, noise.relative))
    return f"variance {read} + {shot} e + {relative} e², e = |a·x|²"


def _summarise(see: Screen, model: rp.RobustPhaseRetrieval, diagnostics: FitDiagnostics) -> None:
    """What was found, in a few lines."""
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
        for one in _model_checks(model)
        for check in one.failed
    ]
    see.facts(facts)


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


def _model_checks(model: rp.RobustPhaseRetrieval) -> tuple[Any, ...]:
    """The test of each signal's model."""
    checks = model.model_check_
    return checks if isinstance(checks, tuple) else (checks,)


def _certificate(model: rp.RobustPhaseRetrieval) -> str:
    """What the certificate says, and under which condition."""
    if not model.certificate_ < 1:
        return "none: with so few samples, robust gradients alone cannot vouch for the answer"
    return (
        f"the error is at most {model.certificate_:.1%} of the signal, "
        f"if no more than {model.contamination_:.1%} of the samples are bad"
    )


def say_costs(
    see: Screen, model: rp.RobustPhaseRetrieval, rows: rp.rows.RowSource, checkpoint: Path | None = None
) -> None:
    """Say what a long run will take, and warn of what it will not get."""
    m, n = rows.shape
    memory, needed, available = memory_needed(rows), checkpoint_needed(rows), available_memory()
    if checkpoint is not None:
        memory += min(needed, MOST_WAITING)
    parts = [f"memory needed beyond the data: about {in_bytes(memory, about=True)}"]
    if available is not None:
        parts[0] += f" of {in_bytes(available, about=True)} that are free"
        if memory > available:
            see.warning(f"{parts[0]}: the system may end the run before it is done.")
    if checkpoint is not None and checkpoint.parent.is_dir():
        free = shutil.disk_usage(checkpoint if checkpoint.is_dir() else checkpoint.parent).free
        left, most = in_bytes(free, about=True), in_bytes(needed, about=True)
        if usual_passes(model) is None:
            parts.append(f"the checkpoint grows with every step ({left} are free on its disk)")
        else:
            parts.append(f"the checkpoint grows to about {most} of {left} that are free on its disk")
        if needed > free:
            see.warning(f"{shown(checkpoint)} will not hold the whole run: {parts[-1]}.")
    if m * n * rows.dtype.itemsize >= LONG_RUN and not see.quiet:
        see.note("; ".join(parts))


class Progress:
    """How far a fit is, by its passes; made when it begins.

    Parameters
    ----------
    model : RobustPhaseRetrieval
        What is being fitted.
    rows : RowSource
        What it is being fitted to.
    """

    def __init__(self, model: rp.RobustPhaseRetrieval, rows: rp.rows.RowSource) -> None:
        self._rows, self._first, self._usual = rows, rows.passes, usual_passes(model)
        self._since = perf_counter()

    def state(self) -> str:
        """Passes so far."""
        done, recalled = self._counts()
        from_disk = f" ({recalled} of them from the checkpoint)" if recalled else ""
        return f"{done} passes over {self._rows.shape[0]} samples{from_disk}"

    def left(self) -> str:
        """Time left as a rule, once a few passes have shown how long one takes; empty before and where nobody can tell."""
        done, recalled = self._counts()
        made = done - recalled
        if made <= 1:
            # Passes from the checkpoint take hardly any time; the clock starts with the first real one.
            self._since = perf_counter()
        if made < FEW_PASSES:
            return ""
        # The last pass counts since it began and is not done.
        each = (perf_counter() - self._since) / (made - 0.5)
        return say_left(seconds_left(self._usual, done, each))

    def _counts(self) -> tuple[int, int]:
        return self._rows.passes - self._first, int(getattr(self._rows, "recalled", 0))
