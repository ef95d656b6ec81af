"""The top of the page: the verdict, the few numbers that matter, and the checks behind them."""

from __future__ import annotations

from robustphase.report.evidence import Evidence
from robustphase.report.markup import fact, paragraph, percent, seconds_text
from robustphase.report.svg import escaped, short_number, tag
from robustphase.report.verdict import checks, guarantee, verdict


def summary_section(evidence: Evidence) -> str:
    """What a person should know first."""
    told = [paragraph(guarantee(evidence))]
    if evidence.true_error is not None:
        told.append(paragraph(f"The truth is known here: the error is {percent(evidence.true_error)} of its norm."))
    if not evidence.converged and evidence.message:
        told.append(paragraph(evidence.message[:1].upper() + evidence.message[1:], "warn"))
    name = tag("span", escaped(evidence.data_name or "unnamed data"))
    return tag(
        "header",
        [
            tag("p", ["robustphase report · ", name], class_="kicker"),
            tag(
                "h1",
                escaped(verdict(evidence)),
                class_=None if evidence.converged else "warn",
                data_key="converged",
                data_value=evidence.converged,
            ),
            tag("div", told, class_="lede"),
            _tiles(evidence),
            _checks(evidence),
        ],
    )


def _tiles(evidence: Evidence) -> str:
    rejected = int(evidence.rejected.sum())
    certificate = fact("certificate", evidence.certificate, percent(evidence.certificate))
    scale = fact("noise_scale", evidence.noise_scale, short_number(evidence.noise_scale))
    time = fact("seconds", evidence.seconds, seconds_text(evidence.seconds))
    passes = fact("passes", evidence.passes, f"{evidence.passes:,}")
    tiles = [("samples rejected", fact("rejected", rejected, f"{rejected:,}"), percent(rejected / evidence.m))]
    if evidence.true_error is not None:
        error = fact("true_error", evidence.true_error, percent(evidence.true_error))
        tiles.append(("true error", error, "of the norm, known here"))
    if evidence.expected_error is not None:
        error = fact("expected_error", evidence.expected_error, percent(evidence.expected_error))
        tiles.append(("expected error", error, "of the norm, from noise"))
    tiles.append(("certificate", certificate, "of the norm, worst case"))
    if evidence.parameters.get("noise_mean") == "unknown":
        background = fact("noise_mean", evidence.noise_mean, short_number(evidence.noise_mean))
        tiles.append(("background", background, "noise mean, fitted"))
    tiles.append(("noise scale", scale, "of clean residuals"))
    tiles.append(("time", time, f"{passes} passes over the data"))
    cells = [
        tag("div", [tag("dt", escaped(name)), tag("dd", value), tag("dd", below, class_="below")])
        for name, value, below in tiles
    ]
    return tag("dl", cells, class_="tiles")


def _checks(evidence: Evidence) -> str:
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
        for check in checks(evidence)
    ]
    return tag("ul", lines, class_="checks", aria_label="checks")
