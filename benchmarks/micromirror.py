"""A transmission matrix measured with on/off micromirrors and an 8-bit camera: complex fields behind patterns of 0 and 1.

``python -m benchmarks micromirror`` simulates the experiment with its faults, recovers all pixels at once, focuses with on/off
masks, and does the same for some pixels with what laboratories use: reweighted amplitude flow, alone and with the readings
thrown out by hand that it explains worst. It writes docs/_generated/micromirror.md and docs/_static/micromirror.png.
``--pixels 4`` looks at a few pixels and writes nothing.
"""

from __future__ import annotations

import sys
import warnings
from time import process_time
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks.options import call
from benchmarks.pictures import encode_png, grey_levels
from benchmarks.render import publish
from benchmarks.store import DOCS, keep_picture
from robustphase.atomic import writing

SIDE, MIRRORS, PATTERNS, SEED = 8, 256, 2048, 50
#: Mean reading above the offset, steps per electron, read noise and offset of an 8-bit camera; readings end at 255.
MEAN, GAIN, READ_NOISE, OFFSET, BITS = 60.0, 0.5, 1.5, 12.0, 8
#: Share of patterns that were not the ones shown, and of readings of each pixel that a spike hits.
WRONG, SPIKES = 0.02, 0.05
#: What the fit is told.
CONTAMINATION = 0.1
#: By hand: so many rounds, each of which throws out this share of all readings, those that fit worst.
ROUNDS, THROWN = 3, 0.04
#: Pixels that others get; masks that are tried for a focus, one for each phase of the light there.
SOME, PHASES = 4, 16
#: Magnification and spacing of the picture.
ZOOM, GAP = 18, 10
PICTURE = "_static/micromirror.png"


class Experiment(NamedTuple):
    """What the laboratory knows, patterns (m, n) and readings (m, p); and what only the simulation knows."""

    patterns: np.ndarray
    readings: np.ndarray
    matrix: np.ndarray
    wrong: np.ndarray
    spikes: np.ndarray


def simulate(pixels: int, seed: int = SEED) -> Experiment:
    """Speckle behind on/off patterns, read by a camera, with its faults."""
    rng = np.random.default_rng(seed)
    matrix = rp.simulate.gaussian_design(pixels, MIRRORS, field="complex", seed=rng)
    shown = rp.simulate.on_off().sample(PATTERNS, MIRRORS, seed=rng)
    light = np.abs(shown @ matrix.T) ** 2
    exposure = MEAN / light.mean(axis=0)
    matrix *= np.sqrt(exposure)[:, np.newaxis]
    readings = rp.simulate.read_camera(
        exposure * light, gain=GAIN, read_noise=READ_NOISE, offset=OFFSET, bits=BITS, seed=rng
    )
    most = float(2**BITS - 1)
    spikes = rng.random(readings.shape) < SPIKES
    readings[spikes] = np.minimum(np.rint(readings[spikes] + rng.uniform(0.2, 1.0, int(spikes.sum())) * most), most)
    wrong = np.zeros(PATTERNS, bool)
    wrong[rng.choice(PATTERNS, round(WRONG * PATTERNS), replace=False)] = True
    recorded = shown.copy()
    recorded[wrong] = rp.simulate.on_off().sample(int(wrong.sum()), MIRRORS, seed=rng)
    return Experiment(recorded, readings, matrix, wrong, spikes)


def fit_all(experiment: Experiment) -> rp.RobustPhaseRetrieval:
    """All pixels at once; neither offset nor faults are known. Readings at the ceiling of the camera are left out."""
    seen = np.where(experiment.readings < 2**BITS - 1, experiment.readings, np.nan)
    model = rp.RobustPhaseRetrieval(
        CONTAMINATION, field="complex", noise_mean="unknown", noise="additive", nonfinite="drop"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(experiment.patterns, seen)


def amplitude_flow(patterns: np.ndarray, readings: np.ndarray) -> np.ndarray:
    """Reweighted amplitude flow, told the offset and the second moment of the patterns, ¼(I + 11ᵀ), which whitens them."""
    mean = np.full((MIRRORS, MIRRORS), 1 / MIRRORS)
    root = 2 * (np.eye(MIRRORS) - mean) + 2 / np.sqrt(1 + MIRRORS) * mean
    found = rp.baselines.reweighted_amplitude_flow(patterns @ root, readings - OFFSET, field="complex")
    return root @ found.signal


def by_hand(patterns: np.ndarray, readings: np.ndarray) -> np.ndarray:
    """The same without saturated readings; then without those that it explains worst, again and again."""
    keep = readings < 2**BITS - 1
    signal = amplitude_flow(patterns[keep], readings[keep])
    for _ in range(ROUNDS):
        misfits = np.where(keep, np.abs(np.abs(patterns @ signal) ** 2 - readings + OFFSET), -1.0)
        keep[np.argsort(misfits)[-round(THROWN * readings.size) :]] = False
        signal = amplitude_flow(patterns[keep], readings[keep])
    return signal


def masks(rows: np.ndarray) -> np.ndarray:
    """For each row the on/off mask that sends most light to its pixel: mirrors on whose light arrives within a half turn."""
    best = np.zeros(rows.shape)
    most = np.zeros(len(rows))
    for phase in np.exp(2j * np.pi * np.arange(PHASES) / PHASES):
        on = ((rows * phase).real > 0).astype(float)
        light = np.abs(np.vecdot(on, rows)) ** 2
        best[light > most], most = on[light > most], np.maximum(light, most)
    return best


def enhancement(matrix: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Light on each pixel when its mask is shown, over the mean of the speckle there."""
    speckle = (np.abs(matrix.sum(axis=1)) ** 2 + (np.abs(matrix) ** 2).sum(axis=1)) / 4
    return np.abs(np.vecdot(on, matrix)) ** 2 / speckle


def error(row: np.ndarray, truth: np.ndarray) -> float:
    return rp.distance(row, truth, relative=True, conjugate=True)


def line(name: str, rows: np.ndarray, matrix: np.ndarray, seconds: float) -> str:
    """One line of the table."""
    errors = [error(row, truth) for row, truth in zip(rows, matrix, strict=True)]
    gain, ideal = enhancement(matrix, masks(rows)), enhancement(matrix, masks(matrix))
    return (
        f"| {name} | {len(rows)} | {np.median(errors):.3f} | {max(errors):.3f} | {np.median(gain):.1f} | {gain.min():.1f} | "
        f"{np.median(gain / ideal):.1%} | {seconds / len(rows):.2f} |"
    )


def tile(light: np.ndarray, brightest: float) -> np.ndarray:
    """One picture of the camera, in amplitudes."""
    grey = grey_levels(np.sqrt(light.reshape(SIDE, SIDE)), 0.0, float(np.sqrt(brightest)))
    return np.pad(np.kron(grey, np.ones((ZOOM, ZOOM), np.uint8)), GAP // 2, constant_values=255)


def picture(matrix: np.ndarray, answers: list[np.ndarray], seed: int = SEED) -> np.ndarray:
    """The camera before, and with the focus of each answer for one pixel; the last one is the truth and sets the greys."""
    rng = np.random.default_rng(seed + 1)
    shown = [rp.simulate.on_off().sample(1, MIRRORS, seed=rng)[0], *(masks(row[np.newaxis])[0] for row in answers)]
    lights = [np.abs(matrix @ on) ** 2 for on in shown]
    return np.hstack([tile(light, float(lights[-1].max())) for light in lights])


def run(pixels: int = SIDE**2) -> None:
    """The experiment; the files of the page if it is whole."""
    experiment = simulate(pixels)
    matrix, some = experiment.matrix, min(SOME, pixels)
    table = [
        "| rows from | pixels | error, median | worst | enhancement, median | least | of the possible | seconds per pixel |",
        "|" + "---|" * 8,
    ]

    def note(text: str) -> None:
        table.append(text)
        print(text, flush=True)

    began = process_time()
    model = fit_all(experiment)
    note(line("robustphase, all pixels at once", model.signal_, matrix, process_time() - began))
    others = {}
    for name, method in (("RAF", amplitude_flow), ("RAF, worst readings thrown out by hand", by_hand)):
        began = process_time()
        columns = experiment.readings[:, :some].T
        others[name] = np.array([method(experiment.patterns, column) for column in columns])
        note(line(name, others[name], matrix[:some], process_time() - began))
    note(line("the true matrix", matrix, matrix, 0.0))
    given_up = model.row_weights_ < 0.5
    flags = model.flag_samples()
    clipped = experiment.readings >= 2**BITS - 1
    spikes = experiment.spikes & ~clipped & ~experiment.wrong[:, np.newaxis]
    fine = ~experiment.spikes & ~clipped & ~experiment.wrong[:, np.newaxis]
    note(
        f"\nOf {int(experiment.wrong.sum())} wrong patterns {int((given_up & experiment.wrong).sum())} were given up, and "
        f"{int((given_up & ~experiment.wrong).sum())} others; {flags[spikes].mean():.1%} of the spikes below the ceiling and "
        f"{flags[fine].mean():.2%} of the intact readings were flagged. {clipped.mean():.1%} of all readings are at the "
        f"ceiling. {int(model.converged_.sum())} of {pixels} pixels converged."
    )
    if pixels == SIDE**2:
        publish("_generated/micromirror.md", "\n".join(table) + "\n", seeds=[SEED, 1])
        answers = [others["RAF"][0], others["RAF, worst readings thrown out by hand"][0], model.signal_[0], matrix[0]]
        with writing(DOCS / PICTURE) as file:
            file.write(encode_png(picture(matrix, answers)))
        keep_picture("micromirror", PICTURE)


if __name__ == "__main__":
    call(run, "micromirror", sys.argv[1:])
