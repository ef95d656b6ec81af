"""What an experiment says about a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: ``holds``: the measurement agrees with what is printed. ``erratum``: it contradicts what is printed and agrees with the
#: correction in docs/errata.md. ``fails``: it agrees with neither.
VERDICTS = ("holds", "fails", "erratum")


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, what was measured, and whether the two agree.

    Attributes
    ----------
    claim : str
        Where it stands in the paper, for example ``"Theorem 3.1"``.
    statement : str
        What is claimed, in one sentence.
    measured : str
        What was found, with figures.
    interval : str
        How sure that is: confidence intervals of the figures.
    verdict : {"holds", "fails", "erratum"}
        ``"erratum"``: what is printed is wrong, and the correction agrees with the measurement.
    erratum : str or None
        The entry of docs/errata.md, such as ``"A1"``; only with that verdict.
    seconds : float
        How long it took.
    figure : str or None
        Path of the drawing.
    data : mapping
        The figures as plain numbers and lists; ``data["figure"]`` is what the drawing shows.
    part : str
        Which part of the claim, where it has several.
    """

    claim: str
    statement: str
    measured: str
    interval: str
    verdict: str
    erratum: str | None = None
    seconds: float = 0.0
    figure: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(map(repr, VERDICTS))}, got {self.verdict!r}.")
        if (self.verdict == "erratum") != (self.erratum is not None):
            raise ValueError(
                f"{self.name} has the verdict {self.verdict!r} and the erratum {self.erratum!r}. "
                'Name an erratum exactly if the verdict is "erratum".'
            )

    @property
    def name(self) -> str:
        """Claim and part."""
        return f"{self.claim}, {self.part}" if self.part else self.claim

    def __str__(self) -> str:
        said = self.verdict if self.erratum is None else f"{self.verdict} {self.erratum}"
        return f"{self.name}: {said}. {self.measured} ({self.interval})"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain values, for JSON."""
        return asdict(self)


def judge(printed: bool, corrected: bool | None = None, erratum: str | None = None) -> tuple[str, str | None]:
    """Verdict and erratum of a measurement that agrees with what is printed, or with a known correction, or with neither.

    Parameters
    ----------
    printed : bool
        Whether the measurement agrees with the paper.
    corrected : bool, optional
        Whether it agrees with the correction, if there is one.
    erratum : str, optional
        The entry that has the correction.
    """
    if printed:
        return "holds", None
    return ("erratum", erratum) if corrected and erratum is not None else ("fails", None)
