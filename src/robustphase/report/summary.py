"""The top of the page: the few numbers that matter."""

from __future__ import annotations

from robustphase.report.blocks import Tile, fact
from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.verdict import guarantee
from robustphase.report.words import percent, seconds_text, short_number


def lede(diagnostics: FitDiagnostics) -> list[str]:
    """What a person should know first, after the verdict."""
    told = [guarantee(diagnostics)]
    if diagnostics.true_error is not None:
        told.append(f"The truth is known here: the error is {percent(diagnostics.true_error)} of its norm.")
    return told


def warning(diagnostics: FitDiagnostics) -> str:
    """What the fit warned of, if it did not converge."""
    if diagnostics.converged or not diagnostics.message:
        return ""
    return diagnostics.message[:1].upper() + diagnostics.message[1:]


def tiles(diagnostics: FitDiagnostics) -> list[Tile]:
    """The expected error first."""
    d, rejected = diagnostics, int(diagnostics.rejected.sum())
    found = []
    if d.expected_error is not None:
        error = fact("expected_error", d.expected_error, percent(d.expected_error))
        found.append(Tile("expected error", error, "of the norm, from noise"))
    if d.true_error is not None:
        error = fact("true_error", d.true_error, percent(d.true_error))
        found.append(Tile("true error", error, "of the norm, known here"))
    found.append(Tile("samples rejected", fact("rejected", rejected, f"{rejected:,}"), percent(rejected / d.m)))
    found.append(
        Tile("certificate", fact("certificate", d.certificate, percent(d.certificate)), "of the norm, worst case")
    )
    if d.parameters.get("noise_mean") == "unknown":
        background = fact("noise_mean", d.noise_mean, short_number(d.noise_mean))
        found.append(Tile("background", background, "noise mean, fitted"))
    found.append(
        Tile("noise scale", fact("noise_scale", d.noise_scale, short_number(d.noise_scale)), "of clean residuals")
    )
    passes = fact("passes", d.passes, f"{d.passes:,}")
    found.append(Tile("time", fact("seconds", d.seconds, seconds_text(d.seconds)), "passes over the data", passes))
    return found
