"""The page of many signals: what is true of all of them, how figures are distributed, and the worst ones in detail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase import plot
from robustphase.plot.many import FIGURES, figure_of
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
from robustphase.report.figures import inline_svg
from robustphase.report.many import ManyDiagnostics
from robustphase.report.verdict import Check

Array = NDArray[Any]

#: Signals and rows that are listed: those that need a look most; and checks that are named for each signal.
LISTED, LISTED_ROWS, NAMED_CHECKS = 20, 10, 3
#: A smaller share of good signals is an alarm: among very many, a few dead pixels are said but are none.
MOST = 0.95
#: A row that is bad for all signals is named in a sentence up to this many of them.
NAMED = 8
ERRORS_NOTE = (
    "The expected error is what the noise alone leaves: repeat the measurement, and answers differ by about this much. The "
    "certificate is the most that is possible if the stated share of samples is bad, whatever they are: a guarantee, not a "
    "forecast."
)


def verdict(many: ManyDiagnostics) -> str:
    """How many signals converged, how many readings were rejected, and what error to expect; in one sentence."""
    settled, share = int(many.converged.sum()), percent(float(many.flagged.mean()))
    error = _median(many.expected_error[many.converged])
    said = f"{settled:,} of {many.p:,} signals converged; {share} of their readings were rejected"
    if settled == 0 or not np.isfinite(error):
        return f"{said}."
    return f"{said}, and the noise leaves an error of about {percent(error)} of the norm."


def lede(many: ManyDiagnostics) -> list[str]:
    """What a person should know first, after the verdict."""
    certified, level = many.certificate[many.certificate < 1], percent(many.certified_level)
    told = [
        f"{certified.size:,} of {many.p:,} signals have a certificate: if no more than {level} of their samples are bad, the "
        f"error is at most {percent(_median(certified))} of the norm in the median."
        if certified.size
        else f"No signal has a certificate: with {level} of the samples bad, robust gradients alone cannot vouch for the answers."
    ]
    bad = np.flatnonzero(many.bad_rows)
    if bad.size:
        named = ", ".join(f"{row:,}" for row in bad[:NAMED]) + (" and others" if bad.size > NAMED else "")
        were = "row is" if bad.size == 1 else "rows are"
        told.append(f"{bad.size:,} {were} bad for all signals together: {named}.")
    return told


def warning(many: ManyDiagnostics) -> str:
    """What the fit warned of, if a signal did not converge."""
    return "" if many.converged.all() or not many.message else many.message[:1].upper() + many.message[1:]


def tiles(many: ManyDiagnostics) -> list[Tile]:
    """The expected error first."""
    error, certified = _median(many.expected_error), int((many.certificate < 1).sum())
    settled, flagged, rows = int(many.converged.sum()), int(many.flagged.sum()), int(many.bad_rows.sum())
    return [
        Tile("expected error", fact("expected_error", error, percent(error)), "of the norm, median of the signals"),
        Tile("signals converged", fact("converged_signals", settled, f"{settled:,}"), f"of {many.p:,}"),
        Tile("readings rejected", fact("rejected", flagged, f"{flagged:,}"), percent(flagged / many.weights.size)),
        Tile("rows bad for all", fact("bad_rows", rows, f"{rows:,}"), f"of {many.m:,}"),
        Tile("certified", fact("certified", certified, f"{certified:,}"), f"of {many.p:,} signals"),
        Tile(
            "time",
            fact("seconds", many.seconds, seconds_text(many.seconds)),
            "passes over the data",
            fact("passes", many.passes, f"{many.passes:,}"),
        ),
    ]


def checks(many: ManyDiagnostics) -> list[Check]:
    """What tells good fits from doubtful ones."""
    left, p = int((~many.converged).sum()), many.p
    empty = _empty(many)
    without = int((~(many.certificate < 1)).sum())
    severe = many.check_severe.sum(axis=0)
    worst = [place for place in np.argsort(-severe, kind="stable")[:3].tolist() if severe[place]]
    named = ", ".join(f"{many.check_names[place]} ({severe[place]:,})" for place in worst)
    hold = "holds" if empty == 1 else "hold"
    return [
        Check("settled", _few(left, p), f"{left:,} of {p:,} signals did not converge" if left else "all converged"),
        Check("signal", _few(empty, p), f"{empty:,} of {p:,} {hold} none at all" if empty else "no column is empty"),
        Check(
            "certificate",
            _few(without, p),
            f"{without:,} of {p:,} signals have none" if without else "every signal has one below its norm",
        ),
        Check(
            "model",
            _few(int(severe.max(initial=0)), p),
            f"fails most often at {named}" if named else "no check fails severely for any signal",
        ),
    ]


def sections(many: ManyDiagnostics) -> list[Section]:
    """The parts of the page below its top, without those that every page has."""
    figures = {name: figure_of(many, name) for name in FIGURES}
    details = [_detail(many, index, one) for index, one in many.details.items()]
    return [_figures(many, figures), _worst(many, figures["rejected"]), _rows(many), _model(many), *details]


def _figures(many: ManyDiagnostics, figures: Mapping[str, Array]) -> Section:
    shape = many.detector_shape
    finite = {name: values[np.isfinite(values)] for name, values in figures.items()}
    drawn = {name: values for name, values in finite.items() if values.size and values.max() > values.min()}
    drawings = [_drawing(many, name, values, None) for name, values in drawn.items()]
    notes = [ERRORS_NOTE]
    if shape is not None and min(shape) > 1:
        drawings += [_drawing(many, name, values, shape) for name, values in drawn.items()]
        notes.append("On the detector, signals that did not converge are crossed out.")
    return Section("All signals", drawings, table=_quantiles(many, figures), notes=notes)


def _drawing(many: ManyDiagnostics, name: str, seen: Array, shape: tuple[int, int] | None) -> Drawing:
    words, where = FIGURES[name][0], "" if shape is None else ", on the detector"
    title = words[:1].upper() + words[1:] + where
    said = f"{seen.size} signals from {short_number(seen.min())} to {short_number(seen.max())}"
    return Drawing(title, inline_svg(lambda ax: plot.distribution(many, name, shape=shape, ax=ax), title, said))


def _quantiles(many: ManyDiagnostics, figures: Mapping[str, Array]) -> Table:
    """Smallest, middle and largest of every figure; infinite ones count."""
    shares = (0.0, 0.05, 0.5, 0.95, 1.0)
    rows = []
    for name, values in figures.items():
        known = values[~np.isnan(values)]
        if known.size:
            found = np.quantile(known, shares, method="nearest").tolist()
            cells = [cell(f"{name}-{share:g}", v, _shown(name, v)) for share, v in zip(shares, found, strict=True)]
            rows.append(Row(FIGURES[name][0], cells))
    head = ("figure", "smallest", "5%", "median", "95%", "largest")
    empty = _empty(many)
    more = (
        f"; {empty:,} more columns hold no signal"
        if empty > 1
        else "; one more column holds no signal"
        if empty
        else ""
    )
    caption = f"How the figures of {many.p - empty:,} signals are distributed{more}."
    return Table("quantiles", caption, head, (), rows)


def _worst(many: ManyDiagnostics, rejected: Array) -> Section:
    rows = []
    for index in many.order[:LISTED].tolist():
        failed = many.check_names[many.check_severe[index]].tolist()
        failed += many.check_names[many.check_failed[index] & ~many.check_severe[index]].tolist()
        values = {
            "expected_error": float(many.expected_error[index]),
            "certificate": float(many.certificate[index]),
            "rejected": float(rejected[index]),
            "noise_scale": float(many.noise_scale[index]),
        }
        cells = [cell(f"signal-{name}", value, _shown(name, value)) for name, value in values.items()]
        state = "✓ converged" if many.converged[index] else "✗ not converged"
        rows.append(
            Row(
                _name(many, index),
                [Cell(state, words=True), *cells, Cell(_listed(failed), words=True)],
                ("signal", str(index)),
            )
        )
    head = ("signal", "outcome", "expected error", "certificate", "rejected", "noise scale", "checks that did not pass")
    caption = f"The {len(rows)} of {many.p:,} signals that need a look most; they count from 0."
    return Section("The signals, worst first", table=Table("signals", caption, head, (1, 6), rows))


def _rows(many: ManyDiagnostics) -> Section:
    title, bad = "Share of the signals that reject each row", int(many.bad_rows.sum())
    said = f"{bad:,} of {many.m:,} rows are bad for all signals"
    drawing = Drawing(title, inline_svg(lambda ax: plot.rows(many, ax=ax), title, said))
    shares = many.flagged.mean(axis=1)
    order = np.lexsort((np.arange(many.m), -shares, ~many.bad_rows))[: min(LISTED_ROWS, bad)]
    rows = [
        Row(
            str(row),
            [
                cell("row-weight", many.row_weights[row], f"{many.row_weights[row]:.3f}"),
                cell("row-share", shares[row], percent(float(shares[row]))),
            ],
            ("row", str(row)),
        )
        for row in order.tolist()
    ]
    caption = f"{said}. The {len(rows)} that look worst."
    table = Table("rows", caption, ("row", "weight", "signals that reject it"), (), rows) if rows else None
    notes = [] if rows else ["No row stands out by more than chance: each signal has its own bad readings."]
    return Section("The rows that all share", [drawing], second=table, notes=notes)


def _model(many: ManyDiagnostics) -> Section:
    rows = []
    for place, name in enumerate(many.check_names.tolist()):
        severe = int(many.check_severe[:, place].sum())
        look = int(many.check_failed[:, place].sum()) - severe
        cells = [
            cell("check-severe", severe, f"{severe:,}"),
            cell("check-look", look, f"{look:,}"),
            Cell("✗ fails" if severe else "! worth a look" if look else "✓ passed by all", words=True),
        ]
        rows.append(Row(name, cells, ("model", name), bool(severe or look)))
    passed = sum(not row.ours for row in rows)
    caption = f"{passed} of {len(rows)} checks of the model are passed by all signals."
    head = ("check", "fails for", "worth a look for", "outcome")
    return Section("Does the model hold?", table=Table("model", caption, head, (3,), rows))


def _detail(many: ManyDiagnostics, index: int, one: FitDiagnostics) -> Section:
    name, rejected = _name(many, index), int(one.rejected.sum())
    draw: dict[str, Callable[[Any], Any]] = {}
    if one.signal.any():
        draw["The signal"] = lambda ax: plot.signal(one, shape=one.image_shape, ax=ax)
    draw["Measured against predicted"] = lambda ax: plot.predictions(one, ax=ax)
    if not one.noiseless:
        # Residuals are measured in widths of the noise.
        draw["Residuals along the rows"] = lambda ax: plot.residuals(one, ax=ax)
        draw["Residuals of the samples"] = lambda ax: plot.noise(one, ax=ax)
    said = f"signal {name}, {rejected:,} samples rejected"
    drawings = [Drawing(title, inline_svg(part, title, said)) for title, part in draw.items()]
    state = "converged" if one.converged else "not converged"
    items = [f"{check.capitalize()}: {found}" for check, found in one.failed_checks.items()]
    intro = [
        f"{state.capitalize()}; {rejected:,} of {one.m:,} samples rejected, noise scale "
        f"{short_number(one.noise_scale)}, certificate {percent(one.certificate)} of the norm."
    ]
    return Section(f"Signal {name}: {state}", drawings, intro=[intro], items=items)


def _empty(many: ManyDiagnostics) -> int:
    """Columns that hold no signal at all."""
    return int((~many.signal.any(axis=1)).sum())


def _few(count: int, signals: int) -> bool:
    return count <= (1 - MOST) * signals


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_CHECKS} more" if len(names) > NAMED_CHECKS else ""
    return ", ".join(names[:NAMED_CHECKS]) + more


def _name(many: ManyDiagnostics, index: int) -> str:
    """The number of a signal, and where it lies on the detector."""
    shape = many.detector_shape
    return f"{index:,}" if shape is None else f"{index:,} (pixel {index // shape[1]}, {index % shape[1]})"


def _shown(name: str, value: float) -> str:
    if not np.isfinite(value):
        return short_number(value)
    return short_number(value) if name in ("noise_scale", "noise_mean") else percent(value)


def _median(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, 0.5, method="nearest")) if known.size else float("nan")
