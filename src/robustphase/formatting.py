"""Numbers, sizes and durations for a person."""

from __future__ import annotations


def in_bytes(count: int) -> str:
    """A number of bytes for a person: three digits and a unit."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            amount = count / size
            # Three digits, but never an exponent.
            return f"{amount:.3g} {unit}" if amount < 999.5 else f"{amount:.0f} {unit}"
    return f"{count} bytes"
