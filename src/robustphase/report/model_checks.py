"""The checks that end every fit, as plain values that a file can keep."""

from __future__ import annotations

from typing import Any, NamedTuple


class CheckRecord(NamedTuple):
    """A check of the model: what it measured, its limit, whether that failed or spoils the answer, and what to do."""

    name: str
    figure: float
    threshold: float
    failed: bool
    severe: bool
    cause: str
    remedy: str


def check_records(checks: Any) -> tuple[CheckRecord, ...]:
    """The checks of one signal (``model_check_``)."""
    return tuple(
        CheckRecord(c.name, float(c.figure), float(c.threshold), bool(c.failed), bool(c.severe), c.cause, c.remedy)
        for c in checks.checks
    )


def failed_checks(checks: Any) -> dict[str, str]:
    """Name and finding of every check of one signal that failed."""
    return {
        check.name: f"{check.figure:.3g}, limit {check.threshold:.3g}: {check.cause}. {check.remedy}"
        for check in checks.failed
    }
