"""How the answer came about: the stages, what was taken for granted, and what it takes to do it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import robustphase as rp
from robustphase import plot
from robustphase.plot.axes import drawable
from robustphase.plot.course import FEW_STAGES, QUANTITIES
from robustphase.report.blocks import (
    Cell,
    Drawing,
    Row,
    Section,
    Table,
    cell,
    fact,
    percent,
    seconds_text,
    short_number,
)
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.figures import inline_svg
from robustphase.report.many import ManyDiagnostics

#: So many stages are listed; of more, the first and the last.
LISTED = 16
#: What is drawn of a history, and its title.
DRAWN = {
    "score": "Score",
    "moved": "How far the signal moved",
    "gradient_norm": "Length of the robust gradient",
    "certificate": "Variance along the worst direction",
}
COLUMNS = ("candidates", "score", "moved", "gradient_norm", "certificate", "removed", "passes", "seconds")
NOTE = (
    "The score is the mean log-likelihood ratio against no signal at all: larger is better. The certificate of a stage is "
    "the variance of the gradients along their worst direction, after the robust mean removed the share shown beside it."
)


def stages_section(diagnostics: FitDiagnostics) -> Section:
    """Charts and a table of the stages."""
    return Section("How it got there", _charts(diagnostics), table=_table(diagnostics), notes=[NOTE])


def _charts(diagnostics: FitDiagnostics) -> list[Drawing]:
    drawings = []
    for key, words in DRAWN.items():
        values = np.asarray(diagnostics.history[key], np.float64)
        seen = values[drawable(values, log=QUANTITIES[key][1])]
        if seen.size < 2:
            continue
        title = f"{words}, by {'stage' if values.size <= FEW_STAGES else 'step'}"
        said = f"{seen.size} values from {short_number(seen.min())} to {short_number(seen.max())}"
        drawings.append(Drawing(title, inline_svg(_drawer(diagnostics, key), title, said)))
    return drawings


def _drawer(diagnostics: FitDiagnostics, key: str) -> Callable[[Any], Any]:
    return lambda ax: plot.history(diagnostics, key, ax=ax)


def _table(diagnostics: FitDiagnostics) -> Table:
    stages = diagnostics.history["stage"]
    count, half = len(stages), LISTED // 2
    listed = list(range(count)) if count <= LISTED else [*range(half), *range(count - half, count)]
    rows = []
    for i in listed:
        if count > LISTED and i == count - half:
            rows.append(Row(f"{count - len(listed)} more steps", [Cell("")] * len(COLUMNS)))
        values = [(name, diagnostics.history[name][i].item()) for name in COLUMNS]
        cells = [cell(name, value, _shown(name, value)) for name, value in values]
        rows.append(Row(f"{i + 1} {stages[i]}", cells, ("stage", str(i))))
    head = ("stage", "candidates", "score", "moved", "gradient", "certificate", "removed", "passes", "time")
    return Table("history", "Every stage of the fit.", head, (), rows)


def _shown(name: str, value: float) -> str:
    if name == "seconds":
        return seconds_text(value)
    return percent(value) if name == "removed" and np.isfinite(value) else short_number(value)


def assumption_section(diagnostics: FitDiagnostics | ManyDiagnostics) -> Section:
    """What was taken for granted, in plain sentences."""
    p, told = diagnostics.parameters, diagnostics.contamination_told
    signal, rows = (
        "complex" if kind.startswith("c") else "real" for kind in (diagnostics.signal.dtype.kind, diagnostics.dtype)
    )
    items = [
        f"Responses are squared magnitudes with noise, y = |a·x|² + z, with {rows} covariates a and a {signal} signal x."
        + (" Behind real covariates the signal and its conjugate are the same." if signal != rows else ""),
        "The rows of A have an unknown scale, mean and covariance, which were estimated; the bad ones may be anything."
        if p.get("whiten") is True
        else "The rows of A have the scale, mean and covariance that they show; the bad ones may be anything."
        if p.get("whiten") == "auto"
        else "The rows of A are standard normal, except for the bad ones, which may be anything.",
        f"The share of bad samples was not stated; {percent(diagnostics.contamination_used)} was found."
        if isinstance(told, str)
        else f"At most {percent(told)} of the samples are bad, in covariates, response or both.",
        "A constant background may be added to every response; it was fitted along."
        if p.get("noise_mean") == "unknown"
        else "The noise has mean zero: there is no background.",
        "The noise is independent of the covariates and has a finite fourth moment.",
    ]
    if p.get("nonfinite") == "drop":
        items.append("Samples with NaN or infinite numbers count as bad.")
    if diagnostics.standard_errors is not None:
        items.append("Standard errors measure the noise, not what bad samples that pass for clean ones may have done.")
    return Section("What was assumed", items=items)


def reproduction_section(diagnostics: FitDiagnostics | ManyDiagnostics) -> Section:
    """Data, software, command, seed, parameters."""
    # What was passed, as it was passed; an unknown parameter of a later version counts as passed.
    defaults = rp.RobustPhaseRetrieval().get_params()
    passed = [f"{name}={value!r}" for name, value in diagnostics.parameters.items() if value != defaults.get(name, ...)]
    code = f"import robustphase as rp\n\nmodel = rp.RobustPhaseRetrieval({', '.join(passed)}).fit(A, y)"
    seed = "from a random state that is gone" if diagnostics.seed is None else str(diagnostics.seed)
    facts = [
        ("data", "data_name", diagnostics.data_name or "unnamed"),
        ("samples", "m", diagnostics.m),
        ("unknowns", "n", diagnostics.n),
        ("type", "dtype", diagnostics.dtype),
        ("SHA-256 of the data", "fingerprint", diagnostics.fingerprint or "not computed"),
        ("command", "command", diagnostics.command or "none, called from Python"),
        ("seed", "seed", seed),
        ("contamination told", "contamination_told", diagnostics.contamination_told),
        ("contamination used", "contamination_used", diagnostics.contamination_used),
        ("software", "versions", ", ".join(f"{name} {version}" for name, version in diagnostics.versions.items())),
    ]
    if isinstance(diagnostics, ManyDiagnostics):
        facts.insert(2, ("signals", "p", diagnostics.p))
    every = ", ".join(f"{name}={value!r}" for name, value in diagnostics.parameters.items())
    return Section(
        "How to reproduce it",
        facts=[(name, fact(key, value, _value(value))) for name, key, value in facts],
        code=code,
        parameters=every,
        notes=["robustphase.files.fingerprint(A, y) gives the hash of a copy of the data."],
    )


def _value(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
