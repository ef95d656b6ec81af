"""An experiment: which claim it is about, and the function that measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.verdict import Verdict


@dataclass(frozen=True)
class Experiment:
    """One measurement.

    Attributes
    ----------
    claim, part : str
        As in its verdict.
    run : callable
        ``run(crew, quick) -> Verdict``.
    in_quick : bool
        Whether the quick version of a reproduction has it.
    """

    claim: str
    part: str
    run: Callable[[Crew, bool], Verdict]
    in_quick: bool = True

    @property
    def name(self) -> str:
        """Claim and part."""
        return f"{self.claim}, {self.part}" if self.part else self.claim
