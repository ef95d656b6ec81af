"""One check of the model, and all checks of a signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sklearn.exceptions import ConvergenceWarning

#: Checks of the design.
ABOUT_ROWS = ("scale of the rows", "mean of the rows", "covariance of the rows")


#: Checks that take an answer for the best there is.
ABOUT_RESIDUALS = (
    "power of the responses",
    "residuals along the rows",
    "length of the signal",
    "expected error",
    "background",
    "evenness of the noise",
    "neighbouring residuals",
    "drift of the background",
    "drift of the gain",
    "drift of the signal",
)


class ModelWarning(ConvergenceWarning):  # type: ignore[misc]
    """The data contradict the model of the fit, so its answer is in doubt."""


class Check(NamedTuple):
    """One check of the model.

    Attributes
    ----------
    name : str
        What was checked.
    figure, threshold : float
        What was measured, and the value it must not pass.
    failed, severe : bool
        Whether it did, and whether the answer is in doubt for it.
    cause, remedy : str
        The likely cause and the next thing to try, if it did.
    """

    name: str
    figure: float
    threshold: float
    failed: bool
    severe: bool
    cause: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        verdict = "severe" if self.severe else "look" if self.failed else "ok"
        line = f"{verdict:7s} {self.name:24s} {self.figure:10.3g}  (limit {self.threshold:.3g})"
        return f"{line}\n        {self.cause}. {self.remedy}" if self.failed else line


@dataclass(frozen=True)
class ModelCheck:
    """All checks of one signal; prints as a table."""

    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed, severe ones first."""
        return tuple(sorted((check for check in self.checks if check.failed), key=lambda check: not check.severe))

    @property
    def severe(self) -> bool:
        """Whether the answer is in doubt."""
        return any(check.severe for check in self.checks)

    @property
    def message(self) -> str:
        """The most severe failure, its likely cause and what to try; empty if all is well."""
        if not self.failed:
            return ""
        worst = self.failed[0]
        others = [check.name for check in self.failed[1:]]
        more = f" Also failed: {', '.join(others)}." if others else ""
        said = "the model does not hold" if self.severe else "the model holds only roughly"
        return (
            f"{said}: {worst.name} is {worst.figure:.3g}, limit {worst.threshold:.3g}. Likely cause: {worst.cause}. "
            f"{worst.remedy}{more}"
        )

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))


class Told(NamedTuple):
    """What a fit was told and how it was made.

    Attributes
    ----------
    stated : float or "auto"
        The contamination that was stated.
    whitened : bool
        Whether the rows were whitened before.
    is_complex : bool
        Whether the signal is complex.
    unknown_mean : bool
        Whether a background was fitted.
    rough : bool, default=False
        The answer was not fitted to the end, so its residuals still depend on A; only the checks that allow for this are made.
    drifting : bool, default=False
        Whether a drift of gain and background was fitted and taken away.
    additive : bool, default=False
        Whether noise was told to be the same for all predictions.
    """

    stated: float | str
    whitened: bool
    is_complex: bool
    unknown_mean: bool
    rough: bool = False
    drifting: bool = False
    additive: bool = False
