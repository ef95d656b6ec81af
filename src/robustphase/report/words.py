"""Numbers for people, and in full for programs."""

from __future__ import annotations

from typing import Any

import numpy as np


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


def percent(share: float) -> str:
    """A share for people: one decimal, two digits below one percent."""
    value = 100 * share
    if not 0 < abs(value) < 1000:
        return short_number(value) + ("%" if np.isfinite(value) else "")
    return f"{value:.1f}".removesuffix(".0") + "%" if abs(value) >= 0.95 else f"{value:.2g}%"


def seconds_text(seconds: float | None) -> str:
    """A time for people."""
    if seconds is None or not np.isfinite(seconds):
        return "–"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def exact(value: Any) -> str:
    """A value with all its digits; nothing for None."""
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)
