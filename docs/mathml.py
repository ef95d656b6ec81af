"""Formulas as MathML, made when the pages are built: a browser shows them without any script, and without the network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def rendered(source: str, display: str) -> str:
    """The formula as an element; one with a command that was not understood fails the build."""
    element = convert(source, display=display)
    if "\\" in element:
        raise ValueError(f"a command is left over in the formula {source!r}: write it with others, see docs/mathml.py.")
    return element


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


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer, and ask for it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.config.html_math_renderer = "mathml"
    app.add_css_file("pages.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
