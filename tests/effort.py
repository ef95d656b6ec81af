"""How often tests repeat what they do with other seeds and inputs.

`make test` is for every commit, so it draws as many worlds as a statement needs. With ``ROBUSTPHASE_THOROUGH=1`` in the
environment the same tests draw more of them, to find what is rare; the bounds are the same.
"""

from __future__ import annotations

import os

THOROUGH = os.environ.get("ROBUSTPHASE_THOROUGH", "0") not in ("", "0")


def seeds(usual: int, thorough: int) -> range:
    """Seeds from zero on: so many usually, and so many where there is time."""
    return range(thorough if THOROUGH else usual)
