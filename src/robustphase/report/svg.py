"""Markup from plain values: the only place where text becomes HTML or SVG.

Whatever comes from outside (file names, messages, names of methods) passes through :func:`escaped`, so it stays text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

#: Characters that XML forbids, and lone surrogates, which undecodable file names hold and UTF-8 cannot write.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
#: Widths of characters in units of the size of the font, for the widest of the usual sans-serif ones (DejaVu Sans).
_NARROW, _WIDE = frozenset("ijlt.,:;'|!()[]/ f-"), frozenset("−+=<>×≤≥∞mMWwGOQDHNUCRAVBKXY√ε%&@…–")
_NARROW_WIDTH, _WIDTH, _WIDE_WIDTH = 0.4, 0.64, 0.84


def escaped(text: object) -> str:
    """Text that is safe between tags and inside quoted attributes."""
    return html.escape(_UNWRITABLE.sub("\ufffd", str(text)), quote=True)


def tag(name: str, content: str | Iterable[str] = "", **attributes: object) -> str:
    """An element.

    Parameters
    ----------
    name : str
        Of the element.
    content : str or iterable of str
        Markup, already escaped.
    **attributes
        Values are escaped; None leaves an attribute out; ``_`` in names becomes ``-``, and a trailing one is dropped.
    """
    inside = content if isinstance(content, str) else "".join(content)
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(number(value) if isinstance(value, float) else value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{pairs}>{inside}</{name}>"


def number(value: float) -> str:
    """A coordinate: one tenth of a pixel is finer than an eye."""
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


def points(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[str]:
    """Pairs of coordinates, ``"x y"``."""
    return [f"{number(a)} {number(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def text_width(text: str, size: float = 12.0) -> float:
    """About how wide a text is, in pixels; a little too wide rather than too narrow."""
    narrow, wide = sum(letter in _NARROW for letter in text), sum(letter in _WIDE for letter in text)
    return size * (_NARROW_WIDTH * narrow + _WIDE_WIDTH * wide + _WIDTH * (len(text) - narrow - wide))


def wrapped(text: str, width: float, size: float = 12.0) -> list[str]:
    """Lines of words that fit into a width; a word that is too long for a line is cut."""
    lines = [""]
    for word in text.split():
        fits = shortened(word, width, size)
        joined = f"{lines[-1]} {fits}".strip()
        if text_width(joined, size) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(fits)
    return lines


def short_number(value: float) -> str:
    """A number for people: whole ones in full, others with three digits, exponents only far from one."""
    if not np.isfinite(value):
        return {"nan": "–", "inf": "∞", "-inf": "−∞"}[str(float(value))]
    if float(value).is_integer() and abs(value) < 1e7:
        written = f"{value:,.0f}"
    elif 1e-3 <= abs(value) < 1e5:
        written = f"{value:,.{max(2 - int(np.floor(np.log10(abs(value)))), 0)}f}"
    else:
        mantissa, exponent = f"{value:.2e}".split("e")
        written = f"{mantissa}e{int(exponent)}"
    return written.replace("-", "−")


def shortened(text: str, width: float, size: float = 12.0) -> str:
    """As much of a text as fits into a width, with an ellipsis where some was left out."""
    if text_width(text, size) <= width:
        return text
    kept = min(len(text), int(width / (_NARROW_WIDTH * size)) + 1)
    while kept > 1 and text_width(text[:kept] + "…", size) > width:
        kept -= 1
    return text[:kept] + "…"
