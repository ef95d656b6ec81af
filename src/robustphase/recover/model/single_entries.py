"""Whether another value of one entry explains more samples.

Where every row has few entries that are not zero, an entry meets few others, and the descent can end with one of them wrong: only
the rows that hold it disagree, and they are flagged as a few bad samples are. Each of them says which two values of the entry
would explain it, ``(±√y − c)/a`` where c is what the other entries give, and around the right value these agree. So the value at
which most of them agree is tried: of the samples that only one of the two signals explains, chance gives half to either (McNemar,
1947).
"""

from __future__ import annotations

import numpy as np

from robustphase.recover.model.rival_signal import RIVAL
from robustphase.rows.source import Array

#: Rows that disagree from which on they are asked.
FEWEST = 6


def single_entry_gain(rows: Array, responses: Array, projections: Array, signal: Array, scale: float) -> float:
    """Standard deviations of chance by which the best change of one entry wins; zero if none does.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        Rows that can be used, real.
    responses, projections : ndarray of shape (m,)
        Responses without their background, and ``a·x`` of the answer.
    signal : ndarray of shape (n,)
        The answer, real.
    scale : float
        Of the residuals that are kept.
    """
    within = RIVAL.explained * scale
    unexplained = np.abs(responses - projections**2) > within
    best = 0.0
    for k, value in enumerate(signal):
        entries = rows[:, k].astype(np.float64)
        asked = np.flatnonzero(unexplained & (entries != 0) & (responses > 0))
        if asked.size < FEWEST:
            continue
        others = projections[asked] - entries[asked] * value
        sizes = np.sqrt(responses[asked])
        other = _densest(np.concatenate((sizes - others, -sizes - others)) / np.tile(entries[asked], 2))
        touched = np.flatnonzero(entries)
        moved = projections[touched] + entries[touched] * (other - value)
        after = np.abs(responses[touched] - moved**2) < within
        gained = int((after & unexplained[touched]).sum())
        lost = int((~after & ~unexplained[touched]).sum())
        best = max(best, (gained - lost) / float(np.sqrt(max(gained + lost, 1))))
    return best


def _densest(values: Array) -> float:
    """The middle of the shortest interval that holds a sixth of the values."""
    ordered = np.sort(values)
    count = max(ordered.size // 6, 2)
    lengths = ordered[count:] - ordered[:-count]
    low = int(lengths.argmin())
    return float(np.median(ordered[low : low + count + 1]))
