"""Coded diffraction at 256 x 256 with 5 % of the detector readings replaced: error, clean-data error, time, and the picture.

``python -m benchmarks diffraction [--side 256] [--masks 12]`` prints the table; at the full size it also writes
docs/_generated/diffraction.md and docs/_static/diffraction.png, and measures how many masks it takes, on small pictures, for
docs/_generated/diffraction_masks.md.
"""

from __future__ import annotations

import os
import resource
import sys
import warnings
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks.options import call
from benchmarks.pictures import encode_png, grey_levels
from benchmarks.render import publish
from benchmarks.store import DOCS, keep_picture
from robustphase.cli.demo_data import grin, sailing_boat

SIDE, MASKS, SEED = 256, 12, 7000
#: Share of readings replaced, by uniform numbers up to this many mean readings; and standard deviation of the noise, Student
#: with three degrees of freedom, in mean readings.
JUNK, HIGHEST, NOISE = 0.05, 20.0, 0.2
#: Phase of the object where the hidden face is brightest.
DEEPEST = 1.5
GAP = 12
PICTURE = "_static/diffraction.png"


class Scene(NamedTuple):
    """An object, its patterns, and the readings before and after the detector failed."""

    truth: np.ndarray
    patterns: rp.simulate.CodedDiffraction
    readings: np.ndarray
    junk: np.ndarray
    spoilt: np.ndarray


def make_scene(side: int, masks: int, seed: int = SEED, noise: float = NOISE) -> Scene:
    """A boat in the amplitude, a face in the phase."""
    rng = np.random.default_rng(seed)
    truth = (sailing_boat(side) * np.exp(1j * DEEPEST * grin(side))).ravel()
    patterns = rp.simulate.CodedDiffraction((side, side), masks, seed=seed, workers=os.cpu_count())
    mean = float(np.vdot(truth, truth).real)
    readings = np.abs(patterns @ truth) ** 2
    readings += noise * mean * rng.standard_t(3, readings.size) / np.sqrt(3)
    junk = np.zeros(readings.size, bool)
    junk[rng.choice(readings.size, int(JUNK * readings.size), replace=False)] = True
    return Scene(truth, patterns, readings, junk, np.where(junk, rng.uniform(0, HIGHEST * mean, junk.size), readings))


def only(patterns: LinearOperator, chosen: np.ndarray) -> LinearOperator:
    """Some of the rows of an operator."""
    rows, everywhere = np.flatnonzero(chosen), patterns.shape[0]

    def back(c: np.ndarray) -> np.ndarray:
        full = np.zeros(everywhere, complex)
        full[rows] = c.ravel()
        return patterns.rmatvec(full)

    return LinearOperator((rows.size, patterns.shape[1]), lambda x: patterns.matvec(x)[rows], back, dtype=complex)


def aligned(signal: np.ndarray, truth: np.ndarray, side: int) -> np.ndarray:
    """The picture with its free phase turned to the truth's."""
    overlap = np.vdot(signal, truth)
    return (signal * overlap / max(abs(overlap), 1e-300)).reshape(side, side)


def panel(pictures: list[np.ndarray]) -> bytes:
    """Amplitudes above, phases below, side by side."""
    lines = []
    for values, low, high in (
        ([np.abs(picture) for picture in pictures], 0.0, 1.0),
        ([np.angle(picture) for picture in pictures], -0.5, DEEPEST + 0.5),
    ):
        tiles = [np.pad(grey_levels(tile, low, high), GAP // 2, constant_values=255) for tile in values]
        lines.append(np.hstack(tiles))
    return encode_png(np.vstack(lines))


def measure(side: int, masks: int) -> tuple[list[str], list[np.ndarray]]:
    """The lines of the table, and the pictures: original, Wirtinger flow, ours."""
    scene = make_scene(side, masks)
    good = ~scene.junk
    clean, kept = only(scene.patterns, good), scene.readings[good]
    lines = ["| fit | readings | relative error | seconds |", "|---|---|---|---|"]
    found = []

    def note(name: str, readings: str, run: object) -> None:
        began = perf_counter()
        signal = run()  # type: ignore[operator]
        seconds = perf_counter() - began
        found.append(aligned(signal, scene.truth, side))
        error = rp.distance(signal, scene.truth, relative=True)
        lines.append(f"| {name} | {readings} | {error:.4f} | {seconds:.0f} |")
        print(lines[-1], flush=True)

    share = f"{JUNK:.0%} replaced"
    ours = rp.RobustPhaseRetrieval(contamination=0.1)
    note("robustphase", share, lambda: ours.fit(scene.patterns, scene.spoilt).signal_)
    flags = ours.flag_samples()
    caught, wrong = float(flags[scene.junk].mean()), float(flags[good].mean())
    settled, records = ours.converged_, list(ours.history_)
    automatic = rp.RobustPhaseRetrieval(contamination="auto")
    note('robustphase, `contamination="auto"`', share, lambda: automatic.fit(scene.patterns, scene.spoilt).signal_)
    note("Wirtinger flow", share, lambda: rp.baselines.wirtinger_flow(scene.patterns, scene.spoilt).signal)
    note("robustphase", "the intact ones only", lambda: ours.fit(clean, kept).signal_)
    note(
        "least squares from the truth",
        "the intact ones only",
        lambda: rp.baselines.wirtinger_flow(clean, kept, start=scene.truth).signal,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines += [
        "",
        f"{side} x {side} pixels, {masks} masks, {scene.readings.size} readings, {os.cpu_count()} cores. The first fit made "
        f"{records[-1].passes} passes and {'settled' if settled else 'did not settle'}; it flagged {caught:.1%} of the "
        f"replaced readings and {wrong:.2%} of the others, and found a share of {automatic.contamination_:.3f} by itself. "
        f"All fits together needed at most {peak:.0f} MB of memory.",
    ]
    print("\n".join([*lines[-1:], *map(str, records)]))
    return lines, [scene.truth.reshape(side, side), found[2], found[0]]


def few_masks(side: int = 32, seeds: int = 6) -> None:
    """How many masks it takes: errors with junk, and with the intact readings only, on a small picture."""
    lines = ["| masks | noise | 5% replaced | the intact ones only | settled |", "|---|---|---|---|---|"]
    for masks in (4, 6, 8, 10, 12, 16):
        for noise in (0.02, 0.2):
            errors, settled = [], 0
            for seed in range(SEED + 1, SEED + 1 + seeds):
                scene = make_scene(side, masks, seed, noise)
                model = rp.RobustPhaseRetrieval(contamination=0.1, nonfinite="drop")
                pair = []
                for readings in (np.where(scene.junk, np.nan, scene.readings), scene.spoilt):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ConvergenceWarning)
                        signal = model.fit(scene.patterns, readings).signal_
                    pair.append(rp.distance(signal, scene.truth, relative=True))
                settled += model.converged_
                errors.append(pair[::-1])
            spoilt, intact = np.array(errors).T
            cells = (f"{np.median(part):.4f} (worst {part.max():.4f})" for part in (spoilt, intact))
            lines.append(f"| {masks} | {noise:g} | {' | '.join(cells)} | {settled} of {seeds} |")
            print(lines[-1], flush=True)
    publish("_generated/diffraction_masks.md", "\n".join(lines) + "\n", seeds=[SEED + 1, seeds])


def run(side: int = SIDE, masks: int = MASKS, seeds: int = 3) -> None:
    """The picture, and then how many masks it takes; at other sizes the picture alone, and nothing is written."""
    lines, pictures = measure(side, masks)
    if (side, masks) == (SIDE, MASKS):
        publish("_generated/diffraction.md", "\n".join(lines) + "\n", seeds=[SEED, 1])
        (DOCS / PICTURE).write_bytes(panel(pictures))
        keep_picture("diffraction", PICTURE)
        few_masks(seeds=seeds)


if __name__ == "__main__":
    call(run, "diffraction", sys.argv[1:])
