"""What a person should know first: one sentence, and the checks behind it."""

from __future__ import annotations

from typing import NamedTuple

from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.rejection_causes import crowded_stretches
from robustphase.report.words import percent

#: More rejected than stated by this much is worth a look: clean samples with large noise are rejected as well.
CLEARLY_MORE = 0.03
#: A certificate beyond the norm of the signal does not even tell it from zero.
LOOSE = 1.0


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
    level = percent(diagnostics.contamination_used)
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
