"""Numbers, sizes and durations for a person."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """A number with so many digits."""
    return f"{float(value):.{digits}g}"


def short_number(value: float) -> str:
    """A number with two or three digits for a table; nothing where there is none."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞"
    size = abs(value)
    return f"{value:.0f}" if 100 <= size < 1e5 else f"{value:.2f}" if 0.1 <= size < 100 else f"{value:.2g}"


def in_bytes(count: float, *, about: bool = False) -> str:
    """A number of bytes with its unit: three digits, or two and a decimal for what is an estimate."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            amount = count / size
            if about:
                return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"
            # Three digits, but never an exponent.
            return f"{amount:.3g} {unit}" if amount < 999.5 else f"{amount:.0f} {unit}"
    return f"{count:.0f} bytes"


def duration(seconds: float) -> str:
    """A time as a person would say it."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"
