"""What the limits of the model check are worth: each of the empirical ones halved and doubled.

A check holds figures of a fit against limits, so that other limits need no other fits: :mod:`benchmarks.wrong_worlds` keeps what
every check was told, and here it is asked again. An answer that another limit lets pass is counted as silent whatever the fit
thought of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks.markdown import table
from robustphase.constants import constants, varied
from robustphase.estimator import model_checking
from robustphase.recover.model import CHECKS, Design, Figures, ModelCheck, Told, check_model


class Heard(NamedTuple):
    """What a check was told."""

    figures: Figures
    design: Design | None
    told: Told
    no_signal: bool

    def severe(self) -> bool:
        """Whether it fails severely, with the present limits."""
        return check_model(self.figures, self.design, self.told, no_signal=self.no_signal).severe


@contextmanager
def listening() -> Iterator[list[Heard]]:
    """What the checks of all fits are told meanwhile."""
    heard: list[Heard] = []

    def checked(figures: Figures, design: Design | None, told: Told, *, no_signal: bool) -> ModelCheck:
        heard.append(Heard(figures, design, told, no_signal))
        return check_model(figures, design, told, no_signal=no_signal)

    with patch.object(model_checking, "check_model", checked):
        yield heard


def counts(wrong: Sequence[Heard], right: Sequence[Heard]) -> tuple[int, int]:
    """How many wrong answers pass, and how many right ones do not."""
    return sum(not one.severe() for one in wrong), sum(one.severe() for one in right)


def changed(value: Any, factor: float) -> Any:
    """A number halved or doubled; between zero and one its distance to the nearer end; the parts of a tuple each."""
    if isinstance(value, tuple):
        return tuple(changed(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    if 0.5 < value < 1:
        return 1 - min(0.5, (1 - value) * factor)
    if value in (0.0, 1.0):
        return value
    return value * factor


def limits_table(wrong: Sequence[Heard], right: Sequence[Heard]) -> str:
    """One line for each empirical limit: what passes and what does not when it is halved and doubled.

    Parameters
    ----------
    wrong, right : sequence of Heard
        What the checks of wrong and of right answers were told.
    """
    heads = ("limit", "value", "halved: wrong ones pass, false alarms", "doubled", "reason")
    passed, alarms = counts(wrong, right)
    lines = []
    for constant in constants(CHECKS):
        if constant.kind != "empirical":
            continue
        cells = []
        for factor in (0.5, 2.0):
            with varied(CHECKS, **{constant.name: changed(constant.value, factor)}):
                now = counts(wrong, right)
            cells.append(f"{now[0] - passed:+d}, {now[1] - alarms:+d}")
        lines.append((f"`{constant.name}`", f"{constant.value:.6g}", *cells, constant.reason))
    return (
        f"{len(wrong)} wrong answers, of which {passed} pass, and {len(right)} right ones, of which {alarms} do not; what other "
        f"limits change of that.\n\n{table(heads, lines)}"
    )
