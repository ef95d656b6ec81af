"""The end of the page: what was taken for granted, and what it takes to do it again."""

from __future__ import annotations

import robustphase as rp
from robustphase.report.blocks import Section, fact
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.many import ManyDiagnostics
from robustphase.report.words import percent


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
