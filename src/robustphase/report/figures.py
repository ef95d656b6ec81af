"""Plots as inline SVG, in colours that follow the page around them.

matplotlib draws; what it writes is then made fit for a page: its colours become the variables of the style sheet, so that light
and dark are decided there; text stays text, in the font of the page; names are unique on the page; dots become one path, which is
a tenth of the size.
"""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from robustphase.plot.axes import GRID, INK, MARKS, MUTED, UNWRITABLE
from robustphase.rows.io.limits import require

Axes = Any

#: Size of the charts: two beside each other on a desk, one below the other on a phone.
WIDTH, HEIGHT = 460, 310
#: Side of a picture, in the same units.
SIDE = 220
#: The variable of the style sheet that stands for each colour.
VARIABLES = {MARKS[name].colour: f"var(--rp-{name})" for name in MARKS if name not in ("rejected", "recovered")}
VARIABLES |= {INK: "var(--rp-ink)", MUTED: "var(--rp-muted)", GRID: "var(--rp-line)"}

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "robustphase",
    "font.size": 11.0,
    "font.family": ["DejaVu Sans"],
    "legend.fontsize": 10.0,
    "axes.labelsize": 11.0,
    "axes.linewidth": 0.8,
    "mathtext.fontset": "dejavusans",
}


def inline_svg(
    draw: Callable[[Axes], Any], title: str, described: str = "", *, size: tuple[float, float] | None = None
) -> str:
    """One ``<svg>`` element, of what ``draw`` draws into the axes it is given.

    ``title`` and ``described`` say what it shows, for those who do not see it; ``size`` is in pixels at full size, by default
    that of a chart.
    """
    width, height = size or (WIDTH, HEIGHT)
    matplotlib = require("matplotlib", extra="report", purpose="the report")
    figure_module = require("matplotlib.figure", extra="report", purpose="the report")
    written = io.StringIO()
    # What a user has set for his own plots does not change the report.
    with matplotlib.rc_context(), warnings.catch_warnings():
        # The page's own fonts write what this one lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        figure = figure_module.Figure(figsize=(width / 72, height / 72), layout="constrained")
        figure.patch.set_visible(False)
        figure.get_layout_engine().set(w_pad=2 / 72, h_pad=2 / 72)
        axes = figure.subplots()
        axes.set_facecolor("none")
        draw(axes)
        figure.savefig(written, format="svg", metadata={"Date": None})
    return fit_for_a_page(written.getvalue(), title, described, (width, height))


def fit_for_a_page(svg: str, title: str, described: str, size: tuple[float, float]) -> str:
    """What matplotlib wrote, as part of a page."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    body = body[body.index(">") + 1 : body.rindex("</svg>")]
    body = re.sub(r"<!--.*?-->|<style [^>]*>.*?</style>", "", body, flags=re.S)
    body = body.replace("xlink:href", "href")
    body = _one_path_for_dots(body)
    body = _style_of_groups(body)
    body = re.sub(r"\bfont: ([\d.]+px)[^;\"]*", r"font-size: \1", body)
    body = re.sub(r"#[0-9a-f]{6}\b", lambda found: VARIABLES.get(found[0], found[0]), body)
    body = re.sub(r' (?:d|x|y)="[^"]*"', lambda found: re.sub(r"\d+\.\d{3,}", _rounded, found[0]), body)
    body = _own_names(body, sha256(f"{title}{described}{body}".encode("utf-8", "replace")).hexdigest()[:6])
    body = re.sub(r">\s+<", "><", body).strip()
    label = _safe(f"{title}. {described}".strip(". ") if described else title)
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rp-chart" role="img" aria-label="{label}" '
        f'viewBox="0 0 {width:g} {height:g}"><title>{_safe(title)}</title>{body}</svg>'
    )


def _rounded(found: re.Match[str]) -> str:
    """Two decimals are finer than an eye."""
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _safe(text: str) -> str:
    return html.escape(UNWRITABLE.sub("\ufffd", text), quote=True)


_MARKER = re.compile(r'<path id="(m[0-9a-f]+)" d="([^"]*)"')
_RUN = re.compile(r'<g( clip-path="[^"]*")?>\s*((?:<use [^>]*/>\s*)+)</g>')
_USE = re.compile(r'<use href="#([^"]*)" x="([^"]*)" y="([^"]*)"(?: style="([^"]*)")?/>')


def _one_path_for_dots(body: str) -> str:
    """Runs of round marks as one path of points with round ends."""
    shapes = dict(_MARKER.findall(body))

    def shortened(found: re.Match[str]) -> str:
        uses = _USE.findall(found[2])
        radius = re.match(r"M 0 ([\d.]+)\s", shapes.get(uses[0][0], "")) if uses else None
        same = len({(name, style) for name, _, _, style in uses}) == 1
        if radius is None or "C" not in shapes[uses[0][0]] or not same:
            return found[0]
        fill = re.search(r"fill: ([^;]+)", uses[0][3])
        opacity = re.search(r"(?:fill-)?opacity: ([\d.]+)", uses[0][3])
        points = "".join(f"M{float(x):.1f} {float(y):.1f}h0" for _, x, y, _ in uses)
        style = f"fill: none; stroke: {fill[1] if fill else INK}; stroke-width: {2 * float(radius[1]):.2f}; stroke-linecap: round"
        style += f"; stroke-opacity: {opacity[1]}" if opacity else ""
        return f'<g{found[1] or ""}><path d="{points}" style="{style}"/></g>'

    return _RUN.sub(shortened, body)


def _style_of_groups(body: str) -> str:
    """The style that all marks of a run share, once."""

    def shared(found: re.Match[str]) -> str:
        styles = {style for _, _, _, style in _USE.findall(found[2])}
        if len(styles) != 1:
            return found[0]
        uses = re.sub(r' style="[^"]*"', "", found[2])
        uses = re.sub(r'"(-?\d+\.\d+)"', lambda number: f'"{float(number[1]):.1f}"', uses)
        return f'<g{found[1] or ""} style="{styles.pop()}">{uses}</g>'

    return _RUN.sub(shared, body)


def _own_names(body: str, prefix: str) -> str:
    """Names that nothing else on the page has; those that nobody refers to are dropped."""
    used = list(dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', body)))
    short = {name: f"{prefix}{place}" for place, name in enumerate(used)}

    def renamed(found: re.Match[str]) -> str:
        return f' id="{short[found[1]]}"' if found[1] in short else ""

    body = re.sub(r' id="([^"]*)"', renamed, body)
    return re.sub(r'(href="#|url\(#)([^")]+)', lambda found: found[1] + short[found[2]], body)
