"""What a fit costs on this machine: passes, seconds, bytes.

The engine reads the data a number of times that hardly depends on the problem, so its time is that number times the time of a
read, which is measured here on a small array in a few milliseconds, with the pass and the threads that a fit would use.
"""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from robustphase import rows

#: Passes over the data of a fit (measured: 44 to 76).
PASSES = 45
#: A pass takes as long as reading the covariates so many times (most carry several vectors) ...
READS_PER_PASS = 3.0
#: ... and so many bytes per sample (elementwise work), and a fit so many seconds whatever its size.
BYTES_PER_PASS, OVERHEAD = 2000.0, 0.05
#: Working memory per sample, per unknown and of the blocks, beside the data.
BYTES_PER_SAMPLE, BYTES_PER_UNKNOWN, BYTES_OF_BLOCKS = 320, 4800, 1_000_000
#: Size of the array that is read to measure the speed, and how often.
TRIAL_BYTES, TRIALS = 2**24, 5
#: Bytes of a covariate.
ITEM = 8


def read_speed() -> float:
    """Bytes per second at which a pass reads covariates from memory; the best of a few trials."""
    columns = 256
    covariates = np.ones((TRIAL_BYTES // (ITEM * columns), columns))
    source, vector = rows.as_source(covariates), np.ones(columns)
    best = np.inf
    for _ in range(TRIALS):
        began = time.perf_counter()
        rows.project(source, vector)
        best = min(best, time.perf_counter() - began)
    return covariates.nbytes / best


@cache
def machine_speed() -> float:
    """`read_speed`, measured once."""
    return read_speed()


def predicted_seconds(n: int, m: int, speed: float) -> float:
    """Time of a fit to n unknowns and m samples in memory, on a machine that reads ``speed`` bytes per second."""
    return OVERHEAD + PASSES * m * (READS_PER_PASS * ITEM * n + BYTES_PER_PASS) / speed


def predicted_bytes(n: int, m: int) -> int:
    """Memory of a fit, the data included."""
    return m * (ITEM * (n + 1) + BYTES_PER_SAMPLE) + BYTES_PER_UNKNOWN * n + BYTES_OF_BLOCKS
