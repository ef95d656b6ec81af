"""What an experiment says about a claim: its verdict, the figure behind it as plain lists, and the page of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from robustphase.experiments.parallel import Pool
from robustphase.experiments.reproduce.stats import Estimate

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
    """Verdict and erratum of a measurement that agrees with what is printed, or with a known correction, or with neither."""
    if printed:
        return "holds", None
    return ("erratum", erratum) if corrected and erratum is not None else ("fails", None)


@dataclass(frozen=True)
class Experiment:
    """One measurement."""

    #: As in its verdict.
    claim: str
    part: str
    run: Callable[[Pool, bool], Verdict]  # ``run(pool, quick) -> Verdict``
    in_quick: bool = True  # Whether the quick version of a reproduction has it

    @property
    def name(self) -> str:
        """Claim and part."""
        return f"{self.claim}, {self.part}" if self.part else self.claim


def series(
    name: str,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    style: str = "both",
) -> dict[str, Any]:
    """Named points, with a band or bars from ``low`` to ``high``; style "line", "points" or "both"."""
    bounds = {key: None if value is None else _plain(value) for key, value in (("low", low), ("high", high))}
    return {"name": name, "x": _plain(x), "y": _plain(y), **bounds, "style": style}


def estimates(name: str, x: npt.ArrayLike, found: Sequence[Estimate]) -> dict[str, Any]:
    """Named figures with their confidence intervals."""
    values, low, high = zip(*found, strict=True)
    return series(name, x, values, low=low, high=high)


def chart(
    title: str, x_label: str, y_label: str, *lines: dict[str, Any], log_x: bool = False, log_y: bool = False
) -> dict[str, Any]:
    """A chart of several series."""
    return {
        "title": title,
        "x_label": x_label,
        "y_label": y_label,
        "log_x": log_x,
        "log_y": log_y,
        "series": list(lines),
    }


def _plain(values: npt.ArrayLike) -> list[float]:
    return [float(value) for value in np.ravel(np.asarray(values))]


def write_page(verdicts: Sequence[Verdict], *, heading: str = "") -> str:
    """The verdicts as a table in Markdown, which a page of the documentation includes.

    Parameters
    ----------
    verdicts : sequence of Verdict
        As :func:`robustphase.experiments.reproduce.reproduce` returns them.
    heading : str, optional
        What to say about the run above the table.
    """
    lines = [
        f"{heading} {_summary(verdicts)}".strip(),
        "",
        "| claim | what is claimed | what was measured | interval | verdict | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for verdict in verdicts:
        cells = (_title(verdict), *map(_text, (verdict.statement, verdict.measured, verdict.interval)), _said(verdict))
        lines.append(f"| {' | '.join(cells)} | {verdict.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def _summary(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.verdict for verdict in verdicts)
    seconds = sum(verdict.seconds for verdict in verdicts)
    processor = sum(float(verdict.data.get("processor_seconds", 0.0)) for verdict in verdicts)
    return (
        f"Of {len(verdicts)} statements {counts['holds']} hold, {counts['erratum']} are errata that the measurement confirms, "
        f"and {counts['fails']} fail. The run took {seconds / 60:.1f} minutes, and {processor / 60:.1f} minutes of processor "
        "time."
    )


def _title(verdict: Verdict) -> str:
    return f"**{_text(verdict.claim)}**" + (f", {_text(verdict.part)}" if verdict.part else "")


def _said(verdict: Verdict) -> str:
    if verdict.erratum is None:
        return verdict.verdict
    # Entries of class A have anchors of their own, misprints share one.
    anchor = verdict.erratum.lower() if verdict.erratum.startswith("A") else "class-b"
    return f"erratum [{verdict.erratum}](errata.md#{anchor})"


def _text(text: str) -> str:
    """Plain text in a cell of a table: asterisks, bars and brackets mean themselves."""
    for sign in "\\*|<[]_`$":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())
