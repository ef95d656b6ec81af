"""Many signals at once against one after the other: time and answers.

``python -m benchmarks many [--signals 1000] [--unknowns 128] [--samples 4096]`` prints the time of the joint fit, that of
separate fits of some of the signals, the ratio for all of them, and the largest relative difference between the two answers.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np

import robustphase as rp
from benchmarks.options import call

SIGNALS, UNKNOWNS, SAMPLES, SEED = 1000, 128, 4096, 9000
#: Standard deviation of the noise, in units of the energy of each signal.
NOISE = 0.5
#: Share of the responses of each signal, a different one for each, and of the patterns that are wrong; and what is told.
BAD_RESPONSES, BAD_PATTERNS, TOLD = 0.05, 0.02, 0.1
#: Separate fits, and joint fits between them.
SEPARATE, JOINT = 20, 2


def make(p: int, n: int, m: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Recorded patterns (m, n), responses (m, p) and signals (n, p) of different sizes."""
    rng = np.random.default_rng(seed)
    displayed = rng.standard_normal((m, n))
    signals = rng.standard_normal((n, p)) / np.sqrt(n) * rng.uniform(0.3, 3.0, p)
    energies = np.linalg.norm(signals, axis=0) ** 2
    responses = (displayed @ signals) ** 2
    responses += energies * rp.simulate.draw_noise("student", (m, p), std=NOISE, seed=rng)
    for column in responses.T:
        bad = rng.choice(m, round(BAD_RESPONSES * m), replace=False)
        # Other readings of the same signal, up to four times as large: nothing that stands out by itself.
        column[bad] = rng.permutation(column[bad]) * rng.uniform(0, 4, bad.size)
    wrong = rng.choice(m, round(BAD_PATTERNS * m), replace=False)
    recorded = displayed.copy()
    recorded[wrong] = rng.standard_normal((wrong.size, n))
    return recorded, responses, signals


def run(signals: int = SIGNALS, unknowns: int = UNKNOWNS, samples: int = SAMPLES) -> None:
    """Separate fits before, between and after joint ones, so that a noisy machine is noisy for both."""
    p, n, m = signals, unknowns, samples
    A, Y, X = make(p, n, m)
    # The first fit of a process also pays for loading libraries and starting threads.
    rp.RobustPhaseRetrieval(TOLD).fit(A, Y[:, :2])
    columns = np.linspace(0, p - 1, min(SEPARATE, p)).astype(int)
    turns = np.array_split(columns, JOINT + 1)
    joint_times, single_times, alone = [], [], {}
    for turn, chosen in enumerate(turns):
        for k in chosen:
            began = perf_counter()
            alone[k] = rp.RobustPhaseRetrieval(TOLD).fit(A, Y[:, k]).signal_
            single_times.append(perf_counter() - began)
        if turn < JOINT:
            began = perf_counter()
            model = rp.RobustPhaseRetrieval(TOLD).fit(A, Y)
            joint_times.append(perf_counter() - began)
            print(f"joint fit {turn + 1}: {joint_times[-1]:.2f} s, {model.history_[-1].passes} passes", flush=True)
    joint, single = float(np.median(joint_times)), float(np.median(single_times))
    apart = max(rp.distance(model.signal_[k], signal, relative=True) for k, signal in alone.items())
    errors = [rp.distance(found, truth, relative=True) for found, truth in zip(model.signal_, X.T, strict=True)]
    print(
        f"{p} signals, n={n}, m={m}: joint fit {joint:.2f} s, separate fits {single:.3f} s each ({len(alone)} measured)"
    )
    print(f"{p} separate fits would take {p * single:.0f} s, {p * single / joint:.1f} times as long")
    print(f"largest relative difference of the answers {apart:.1e}; error median {np.median(errors):.3f}, ", end="")
    print(f"largest {max(errors):.3f}; settled {int(np.sum(model.converged_))} of {p}")


if __name__ == "__main__":
    call(run, "many", sys.argv[1:])
