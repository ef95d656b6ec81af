"""The fused passes against plain NumPy and against the machine's streaming-read limit."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import peak_extra_bytes, ratio, time_by_turns
from robustphase.rows import MemoryRows, ScaledRows, paired_loss_gradient, row_peaks, squared_loss_gradient
from robustphase.rows.threads import allowed_threads, run_in_threads, single_threaded_blas

M, N = 100_000, 500


def streaming_read(array: np.ndarray) -> float:
    """Read every byte once on all cores: the least any pass can take."""
    parts = np.array_split(array.ravel(), allowed_threads())
    with single_threaded_blas():
        return sum(run_in_threads(lambda part: float(np.dot(part, part)), parts))


def run() -> None:
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((M, N)), rng.standard_normal(N)
    y = (A @ x) ** 2 + rng.standard_normal(M)
    source = MemoryRows(A)
    view, weights, mean, vectors = ScaledRows(source, y), np.ones(M), np.zeros(N), rng.standard_normal((N, 8))

    def plain_gradient() -> np.ndarray:
        s = A @ x
        return A.T @ ((s * s - y) * s) / M

    def plain_covariance_times() -> np.ndarray:
        deviations = y[:, None] * (A @ vectors) - mean @ vectors
        return A.T @ (y[:, None] * deviations) / M

    passes = {
        "gradient": lambda: squared_loss_gradient(source, y, x),
        "paired gradient": lambda: paired_loss_gradient(source, y, x),
        "mean of a view": lambda: view.mean(weights),
        "covariance x 8 vectors": lambda: view.covariance_times(weights, mean, vectors),
        "projection scores": lambda: view.inner(x),
        "squared distances": lambda: view.squared_distances(),
        "row peaks": lambda: row_peaks(source),
    }
    seconds = time_by_turns(
        {
            "plain NumPy gradient": plain_gradient,
            "plain NumPy covariance": plain_covariance_times,
            "streaming read": lambda: streaming_read(A),
            **passes,
        }
    )
    read = seconds["streaming read"]
    print(f"passes over A, n={N}, m={M}, float64, {allowed_threads()} threads; medians (minima) of 11 rounds")
    print(f"  streaming read of A: {read.min() * 1e3:.1f} ms, {A.nbytes / read.min() / 1e9:.1f} GB/s at best")
    for name, values in seconds.items():
        over_read = ratio(values, read)
        extra = f"{peak_extra_bytes(passes[name]) / A.nbytes:6.1%} of A" if name in passes else ""
        print(f"  {name:24s} {over_read[0]:5.2f} ({over_read[1]:5.2f}) x streaming read   extra memory {extra}")
    for name, plain in (("gradient", "plain NumPy gradient"), ("covariance x 8 vectors", "plain NumPy covariance")):
        gain = ratio(seconds[plain], seconds[name])
        print(f"  {name}: {gain[0]:.2f} ({gain[1]:.2f}) times faster than {plain}")
