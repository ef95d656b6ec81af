"""How far an answer can be trusted: one sentence, the numbers beside it, the three errors, and the checks of fit and model."""

from __future__ import annotations

from typing import NamedTuple

from robustphase import plot
from robustphase.plot.course import errors_of
from robustphase.report.blocks import (
    Cell,
    Drawing,
    Row,
    Section,
    Table,
    Tile,
    cell,
    fact,
    percent,
    seconds_text,
    short_number,
)
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.figures import WIDTH, inline_svg
from robustphase.report.rejection_causes import crowded_stretches

#: More rejected than stated by this much is worth a look: clean samples with large noise are rejected as well.
CLEARLY_MORE = 0.03
#: A certificate beyond the norm of the signal does not even tell it from zero.
LOOSE = 1.0
EXPLAINED = {
    "expected": "What the noise alone leaves: repeat the measurement, and answers differ by about this much. It says nothing of "
    "bad samples that pass for clean ones.",
    "certificate": "The most that is possible if the stated share of samples is bad, whatever they are. It is a guarantee, not a "
    "forecast: errors are usually several times smaller.",
    "true": "The distance to the truth, known in simulations only. Real data do not tell it.",
}
MODEL_NOTE = (
    "Checks that are worth a look do not spoil the answer; where one fails, the fit has not converged and its certificate is "
    'infinite. The page "Can I trust this answer?" of the documentation explains each of them.'
)


class Check(NamedTuple):
    """One thing that was looked at: its name, whether it is as it should be, and what was found."""

    name: str
    passed: bool
    found: str


def verdict(diagnostics: FitDiagnostics) -> str:
    """Whether it converged, how many samples were rejected, and what error to expect; in one sentence."""
    rejected = int(diagnostics.rejected.sum())
    were = "was" if rejected == 1 else "were"
    samples = f"{rejected:,} of {diagnostics.m:,} samples ({percent(rejected / diagnostics.m)}) {were} rejected"
    if not diagnostics.converged:
        return f"Not converged: {samples}, and the signal should not be relied on before the cause is known."
    return f"Converged: {samples}, and {_error_sentence(diagnostics)}."


def guarantee(diagnostics: FitDiagnostics) -> str:
    """What the certificate says, in one sentence."""
    level = percent(diagnostics.certified_level)
    if not diagnostics.certificate < 1:
        return (
            f"The certificate ({percent(diagnostics.certificate)}) is as large as the signal: with {level} of the samples bad, "
            "robust gradients alone cannot vouch for the answer."
        )
    return (
        f"If no more than {level} of the samples are bad, the error is at most {percent(diagnostics.certificate)} of the "
        "signal's norm, whatever the bad samples are; usually it is several times smaller."
    )


def checks(diagnostics: FitDiagnostics) -> list[Check]:
    """What tells a good fit from a doubtful one."""
    return [
        _settled(diagnostics),
        _share(diagnostics),
        Check(
            "certificate",
            diagnostics.certificate < LOOSE,
            f"vouches for {percent(diagnostics.certificate)} of the norm of the signal"
            + ("" if diagnostics.certificate < LOOSE else "; more samples, or fewer bad ones, would make it smaller"),
        ),
        _spread(diagnostics),
        *(Check(f"model: {name}", False, found) for name, found in diagnostics.failed_checks.items()),
    ]


def lede(diagnostics: FitDiagnostics) -> list[str]:
    """What a person should know first, after the verdict."""
    told = [guarantee(diagnostics)]
    if diagnostics.true_error is not None:
        told.append(f"The truth is known here: the error is {percent(diagnostics.true_error)} of its norm.")
    return told


def warning(diagnostics: FitDiagnostics) -> str:
    """What the fit warned of, if it did not converge."""
    if diagnostics.converged or not diagnostics.message:
        return ""
    return diagnostics.message[:1].upper() + diagnostics.message[1:]


def tiles(diagnostics: FitDiagnostics) -> list[Tile]:
    """The expected error first."""
    d, rejected = diagnostics, int(diagnostics.rejected.sum())
    found = []
    if d.expected_error is not None:
        error = fact("expected_error", d.expected_error, percent(d.expected_error))
        found.append(Tile("expected error", error, "of the norm, from noise"))
    if d.true_error is not None:
        error = fact("true_error", d.true_error, percent(d.true_error))
        found.append(Tile("true error", error, "of the norm, known here"))
    found.append(Tile("samples rejected", fact("rejected", rejected, f"{rejected:,}"), percent(rejected / d.m)))
    found.append(
        Tile("certificate", fact("certificate", d.certificate, percent(d.certificate)), "of the norm, worst case")
    )
    if d.parameters.get("noise_mean") == "unknown":
        background = fact("noise_mean", d.noise_mean, short_number(d.noise_mean))
        found.append(Tile("background", background, "noise mean, fitted"))
    found.append(
        Tile("noise scale", fact("noise_scale", d.noise_scale, short_number(d.noise_scale)), "of clean residuals")
    )
    passes = fact("passes", d.passes, f"{d.passes:,}")
    found.append(Tile("time", fact("seconds", d.seconds, seconds_text(d.seconds)), "passes over the data", passes))
    return found


def errors_section(diagnostics: FitDiagnostics) -> Section:
    """A chart of the errors, and what they mean."""
    rows = errors_of(diagnostics)
    title = "Error, relative to the norm of the signal"
    said = "; ".join(f"{name}: {percent(value)}" for name, value, _ in rows)
    size = (WIDTH, 90 + 44 * len(rows))
    chart = Drawing(title, inline_svg(lambda ax: plot.certificate(diagnostics, ax=ax), title, said, size=size))
    kinds = [kind for kind in EXPLAINED if any(name.startswith(kind) for name, _, _ in rows)]
    return Section(
        "How far off it may be",
        [chart],
        items=[f"{kind.capitalize()}{'' if kind == 'certificate' else ' error'}. {EXPLAINED[kind]}" for kind in kinds],
    )


def model_section(diagnostics: FitDiagnostics) -> Section | None:
    """Every check with its figure and limit; with likely cause and remedy where it did not pass."""
    if not diagnostics.model_check:
        return None
    rows = [
        Row(
            check.name,
            [
                cell("check-figure", check.figure, short_number(check.figure)),
                cell("check-limit", check.threshold, short_number(check.threshold)),
                Cell("✗ fails" if check.severe else "! worth a look" if check.failed else "✓ passed", words=True),
                Cell(f"{check.cause}. {check.remedy}" if check.failed else "", words=True),
            ],
            ("model", check.name),
            check.failed,
        )
        for check in diagnostics.model_check
    ]
    failed = sum(check.failed for check in diagnostics.model_check)
    caption = f"{len(rows) - failed} of {len(rows)} checks of the model passed."
    table = Table(
        "model", caption, ("check", "figure", "limit", "outcome", "likely cause and what to try"), (3, 4), rows
    )
    return Section("Does the model hold?", table=table, notes=[MODEL_NOTE])


def _error_sentence(diagnostics: FitDiagnostics) -> str:
    if diagnostics.expected_error is not None:
        return f"the noise leaves an error of about {percent(diagnostics.expected_error)} of the signal's norm"
    if diagnostics.certificate < 1:
        return f"the signal lies within {percent(diagnostics.certificate)} of its norm of the answer"
    return "the data do not bound the error of the signal"


def _settled(diagnostics: FitDiagnostics) -> Check:
    if diagnostics.converged:
        return Check("settled", True, "the last stage moved the signal no further")
    return Check(
        "settled", False, diagnostics.message or "the last stage still moved the signal; the fit's warning says why"
    )


def _share(diagnostics: FitDiagnostics) -> Check:
    share = float(diagnostics.rejected.mean())
    if isinstance(diagnostics.contamination_told, str):
        found = f"{percent(diagnostics.contamination_used)} found, as nothing was stated"
        # Beyond this level no single signal explains the data better than another.
        return Check("share rejected", diagnostics.contamination_used < 0.35, found)
    told = diagnostics.contamination_told
    if share <= told + CLEARLY_MORE:
        return Check("share rejected", True, f"{percent(share)} rejected, {percent(told)} stated")
    return Check(
        "share rejected",
        False,
        f"{percent(share)} rejected but only {percent(told)} stated: state more, or contamination='auto'",
    )


def _spread(diagnostics: FitDiagnostics) -> Check:
    crowded = crowded_stretches(diagnostics)
    if not crowded:
        return Check("spread over the rows", True, "rejected samples keep to no stretch of the rows")
    first = "; ".join(f"{s.cause} in rows {s.start:,} to {s.stop - 1:,} ({percent(s.share)})" for s in crowded[:3])
    more = f"; and {len(crowded) - 3} more" if len(crowded) > 3 else ""
    return Check(
        "spread over the rows",
        False,
        f"rejected samples crowd together: {first}{more}. A dead part of the detector, or a drift?",
    )
