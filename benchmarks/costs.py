"""What the start and the whole fit cost over what anybody would write in NumPy, and how the start grows."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np

import robustphase as rp
from benchmarks.options import call
from benchmarks.timing import ratio, slope, time_by_turns
from robustphase.initialise.start import plain_spectral_start
from robustphase.rows import MemoryRows

#: Dimension, number of samples and field of the worlds of whole fits, and the one that is fitted in single precision too.
SIZES = (
    (100, 5000, "real"),
    (500, 20000, "real"),
    (500, 100000, "real"),
    (2000, 40000, "real"),
    (500, 50000, "complex"),
)
SINGLE = (500, 100000, "real")
ROUNDS = 7


def run(rounds: int = ROUNDS) -> None:
    start()
    fit(rounds)


def start() -> None:
    clean = rp.simulate.make_world(500, 20000, contamination=0.0, attack="none", seed=0)
    bad = rp.simulate.make_world(500, 20000, contamination=0.1, attack="decoy", seed=0)
    source = MemoryRows(clean.A)
    seconds = time_by_turns(
        {
            "plain spectral start to 1e-3": lambda: plain_spectral_start(source, clean.y),
            "default start under attack": lambda: rp.spectral_init(bad.A, bad.y, 0.1),
        },
        rounds=5,
    )
    plain, robust = seconds.values()
    print(f"start, n=500, m=20000: {ratio(robust, plain)[0]:.2f} ({ratio(robust, plain)[1]:.2f}) times a plain one")
    for name, sizes in (("m", [(200, m) for m in (8000, 16000, 32000)]), ("n", [(n, 16000) for n in (100, 200, 400)])):
        times = []
        for n, m in sizes:
            world = rp.simulate.make_world(n, m, contamination=0.1, attack="decoy", seed=0)
            taken = time_by_turns({"start": lambda w=world: rp.spectral_init(w.A, w.y, 0.1)}, rounds=3)
            times.append(float(taken["start"].min()))
        print(f"  growth in {name}: exponent {slope([n if name == 'n' else m for n, m in sizes], times):.2f}")


def fit(rounds: int = ROUNDS) -> None:
    """The whole fit under attack over a plain method on clean data, and in single over double precision."""
    for n, m, field in SIZES:
        clean = rp.simulate.make_world(n, m, contamination=0.0, attack="none", field=field, seed=0)
        bad = rp.simulate.make_world(n, m, contamination=0.1, attack="decoy", field=field, seed=0)
        seconds = time_by_turns(
            {"plain": partial(plain_wirtinger_flow, clean.A, clean.y), "ours": partial(ours, bad.A, bad.y)}, rounds
        )
        model, both = ours(bad.A, bad.y), ratio(seconds["ours"], seconds["plain"])
        print(
            f"whole fit under attack, {field}, n={n}, m={m}: {both[0]:.2f} ({both[1]:.2f}) times a plain NumPy Wirtinger flow; "
            f"{model.history_[-1].passes} passes, relative error {rp.distance(model.signal_, bad.truth, relative=True):.4f}",
            flush=True,
        )
        if (n, m, field) == SINGLE:
            rows, responses = bad.A.astype(np.float32), bad.y.astype(np.float32)
            seconds = time_by_turns(
                {"double": partial(ours, bad.A, bad.y), "single": partial(ours, rows, responses)}, rounds
            )
            both = ratio(seconds["double"], seconds["single"])
            print(f"  in single precision {both[0]:.2f} ({both[1]:.2f}) times as fast", flush=True)


def ours(A: np.ndarray, y: np.ndarray) -> rp.RobustPhaseRetrieval:
    return rp.RobustPhaseRetrieval(contamination=0.1).fit(A, y)


def plain_wirtinger_flow(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spectral start to 1e-3, then gradient steps of 0.2/‖x₀‖² to a relative change of 1e-6, as anybody would write it.

    With few samples for many unknowns the steps are too long: then it stops far away.
    """
    m, n = A.shape
    back = A.conj().T if np.iscomplexobj(A) else A.T
    v = np.random.default_rng(0).standard_normal(n)
    v /= np.linalg.norm(v)
    for _ in range(200):
        w = back @ (y * (A @ v))
        w /= np.linalg.norm(w)
        inner = np.vdot(v, w)
        done = np.linalg.norm(w - v * (inner / abs(inner))) < 1e-3
        v = w
        if done:
            break
    x = np.sqrt(y.mean()) * v
    step = 0.2 / np.vdot(x, x).real
    for _ in range(500):
        s = A @ x
        energies = (s * s.conj()).real if np.iscomplexobj(s) else s * s
        move = step * (back @ ((energies - y) * s)) / m
        x = x - move
        change = np.linalg.norm(move) / np.linalg.norm(x)
        if not 1e-6 <= change <= 1.0:
            break
    return x


if __name__ == "__main__":
    call(run, "costs", sys.argv[1:])
