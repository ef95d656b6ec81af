"""The top of the page: the verdict, the few numbers that matter, and the checks behind them."""

from __future__ import annotations

from robustphase.report.diagnostics import FitDiagnostics
from robustphase.report.markup import fact, paragraph, percent, seconds_text
from robustphase.report.svg import escaped, short_number, tag
from robustphase.report.verdict import checks, guarantee, verdict


def summary_section(diagnostics: FitDiagnostics) -> str:
    """What a person should know first."""
    told = [paragraph(guarantee(diagnostics))]
    if diagnostics.true_error is not None:
        told.append(paragraph(f"The truth is known here: the error is {percent(diagnostics.true_error)} of its norm."))
    if not diagnostics.converged and diagnostics.message:
        told.append(paragraph(diagnostics.message[:1].upper() + diagnostics.message[1:], "warn"))
    name = tag("span", escaped(diagnostics.data_name or "unnamed data"))
    return tag(
        "header",
        [
            tag("p", ["robustphase report · ", name], class_="kicker"),
            tag(
                "h1",
                escaped(verdict(diagnostics)),
                class_=None if diagnostics.converged else "warn",
                data_key="converged",
                data_value=diagnostics.converged,
            ),
            tag("div", told, class_="lede"),
            _tiles(diagnostics),
            _checks(diagnostics),
        ],
    )


def _tiles(diagnostics: FitDiagnostics) -> str:
    rejected = int(diagnostics.rejected.sum())
    certificate = fact("certificate", diagnostics.certificate, percent(diagnostics.certificate))
    scale = fact("noise_scale", diagnostics.noise_scale, short_number(diagnostics.noise_scale))
    time = fact("seconds", diagnostics.seconds, seconds_text(diagnostics.seconds))
    passes = fact("passes", diagnostics.passes, f"{diagnostics.passes:,}")
    tiles = [("samples rejected", fact("rejected", rejected, f"{rejected:,}"), percent(rejected / diagnostics.m))]
    if diagnostics.true_error is not None:
        error = fact("true_error", diagnostics.true_error, percent(diagnostics.true_error))
        tiles.append(("true error", error, "of the norm, known here"))
    if diagnostics.expected_error is not None:
        error = fact("expected_error", diagnostics.expected_error, percent(diagnostics.expected_error))
        tiles.append(("expected error", error, "of the norm, from noise"))
    tiles.append(("certificate", certificate, "of the norm, worst case"))
    if diagnostics.parameters.get("noise_mean") == "unknown":
        background = fact("noise_mean", diagnostics.noise_mean, short_number(diagnostics.noise_mean))
        tiles.append(("background", background, "noise mean, fitted"))
    tiles.append(("noise scale", scale, "of clean residuals"))
    tiles.append(("time", time, f"{passes} passes over the data"))
    cells = [
        tag("div", [tag("dt", escaped(name)), tag("dd", value), tag("dd", below, class_="below")])
        for name, value, below in tiles
    ]
    return tag("dl", cells, class_="tiles")


def _checks(diagnostics: FitDiagnostics) -> str:
    lines = [
        tag(
            "li",
            [
                tag("span", "✓" if check.passed else "!", class_="mark", aria_hidden="true"),
                tag("b", escaped(check.name + (":" if check.passed else ", look here:"))),
                " ",
                escaped(check.found),
            ],
            class_="good" if check.passed else "look",
            data_check=check.name,
            data_value=check.passed,
        )
        for check in checks(diagnostics)
    ]
    return tag("ul", lines, class_="checks", aria_label="checks")
