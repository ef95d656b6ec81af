"""Many mirrors: a complex signal behind on/off patterns in single precision, 20 patterns for each mirror.

``python -m benchmarks large_patterns`` fits the same readings with the second moment of the patterns found out and told, counts
passes, seconds of the processor and the memory beside the patterns, and writes docs/_generated/large_patterns.md.
``--sizes 4096`` takes a few minutes and 2 GB, and writes nothing; nor do other sizes.
"""

from __future__ import annotations

import sys
import tracemalloc
from time import process_time

import numpy as np

import robustphase as rp
from benchmarks.options import call
from benchmarks.render import publish

SIZES = (512, 1024)
PER_MIRROR, SEED = 20, 70
#: Share of bad readings, those of other patterns made dark or three times as bright; and noise over the mean reading.
BAD, NOISE = 0.05, 0.1
#: Patterns that are drawn at once.
BLOCK = 4096


def measured(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patterns, readings and the signal."""
    rng = np.random.default_rng([SEED, n])
    m = PER_MIRROR * n
    A = np.empty((m, n), np.float32)
    for low in range(0, m, BLOCK):
        A[low : low + BLOCK] = rng.random(A[low : low + BLOCK].shape, dtype=np.float32) < 0.5
    x = rp.simulate.random_signal(n, field="complex", seed=rng)
    y = np.abs(A @ x.real.astype(np.float32) + 1j * (A @ x.imag.astype(np.float32))) ** 2
    y = y + NOISE * y.mean() * rng.standard_normal(m)
    bad = rng.random(m) < BAD
    y[bad] = rng.permutation(y)[: bad.sum()] * rng.choice([0.0, 3.0], int(bad.sum()))
    return A, y, x


def standardise(A: np.ndarray) -> tuple[float, float]:
    """Divide rows in place by the root of their second moment, ¼(I + 11ᵀ): what it is across the mean direction, and along it."""
    n = A.shape[1]
    across, along = 2.0, 2 / np.sqrt(n + 1)
    for low in range(0, len(A), BLOCK):
        part = A[low : low + BLOCK]
        means = part.mean(axis=1, keepdims=True)
        part *= across
        part += np.float32(along - across) * means
    return across, along


def fitted(A: np.ndarray, y: np.ndarray, whiten: str | bool) -> tuple[rp.RobustPhaseRetrieval, float, float]:
    """The fit, its seconds, and the bytes that it takes beside the patterns."""
    tracemalloc.start()
    began = process_time()
    model = rp.RobustPhaseRetrieval(BAD, field="complex", whiten=whiten).fit(A, y)
    seconds, most = process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return model, seconds, most


def lines_of(n: int) -> list[str]:
    """Two lines of the table."""
    A, y, truth = measured(n)
    found = []
    for name, whiten in (("found out", "auto"), ("told", False)):
        across, along = (1.0, 1.0) if whiten else standardise(A)
        model, seconds, memory = fitted(A, y, whiten)
        signal = np.asarray(model.signal_)
        signal = across * signal + (along - across) * signal.mean()
        error = rp.distance(signal, truth, relative=True, conjugate=True)
        passes, settled = model.history_[-1].passes, bool(model.converged_)
        found.append(
            f"| {n} | {name} | {error:.5f} | {passes} | {seconds:.0f} | {memory / 1e6:.0f} of {A.nbytes / 1e6:.0f} | {settled} |"
        )
        print(found[-1], flush=True)
    return found


def run(sizes: tuple[int, ...] = SIZES) -> None:
    """The table, and the page if the sizes are those of the page."""
    # What is imported on the way is no memory of a fit.
    fitted(*measured(16)[:2], "auto")
    table = ["| n | second moment | error | passes | seconds | MB beside A, of A | converged |", "|" + "---|" * 7]
    for n in sizes:
        table += lines_of(n)
    if sizes == SIZES:
        publish("_generated/large_patterns.md", "\n".join(table) + "\n", seeds=[SEED, 1])


if __name__ == "__main__":
    call(run, "large_patterns", sys.argv[1:])
