"""Formulas as MathML, made when the pages are built: a browser shows them without any script, and without the network.

Where a machine has no font for mathematics, indices are not where they belong; so the pages bring STIX Two Math along, the copy
that the package ziamath holds.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset_file

#: A bar as it comes, which browsers space like a relation; and the bar of a modulus.
BAR, MODULUS = '<mo stretchy="false">&#x0007C;</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>'
FONT = Path("fonts", "STIXTwoMath-Regular.ttf")


def rendered(source: str, display: str) -> str:
    """The formula as an element; one with a command that was not understood fails the build."""
    element = convert(source, display=display)
    if "\\" in element:
        raise ValueError(f"a command is left over in the formula {source!r}: write it with others, see docs/mathml.py.")
    return element.replace(BAR, MODULUS)


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Within a line."""
    writer.body.append(rendered(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_display(writer: Any, node: nodes.math_block) -> None:
    """On a line of its own."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(rendered(node.astext(), "block"))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def copy_font(app: Sphinx, failure: Exception | None) -> None:
    """Put the font beside the style that names it."""
    spec = find_spec("ziamath")
    if failure is None and app.builder.format == "html" and spec is not None and spec.origin is not None:
        copy_asset_file(Path(spec.origin).parent / FONT, Path(app.outdir) / "_static")


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer, and ask for it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.config.html_math_renderer = "mathml"
    app.add_css_file("pages.css")
    app.connect("build-finished", copy_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
