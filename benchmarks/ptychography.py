"""A real ptychographic scan with misplaced frames: distance to the reference, frames found, time; all beside amplitude flow.

``python -m benchmarks.ptychography --data scan.npz [--frames 60 --wrong 6 --row 0 --column 0 --seed 0]``

The scan is one of :mod:`benchmarks.ptychography_scan`. Frames around the middle, or so many pixels beside it, are taken; some of
those that were recorded at least two pixels off are left at their recorded position. The reference is amplitude flow on true
positions from a flat start. ``--picture file.png`` draws plain method, ours and reference side by side.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

import robustphase as rp
from benchmarks.ptychography_scan import REGULARISED, WANTED, find_scan, load_scan

#: Iterations of amplitude flow, and the least light of pixels that are compared, over the most.
ITERATIONS, LIT = 150, 0.1
#: Least distance of a recorded from a true position that is wrong.
APART = 2.0


class Selection(NamedTuple):
    """Frames of a scan: operators at true and at stated positions, readings, and which frames are misplaced."""

    true: rp.simulate.Ptychography
    stated: rp.simulate.Ptychography
    readings: np.ndarray
    wrong: np.ndarray

    def without_wrong(self) -> tuple[rp.simulate.Ptychography, np.ndarray]:
        """Operator and readings of the frames that are where they are said to be."""
        right = ~self.wrong
        operator = rp.simulate.Ptychography(self.stated.probe, self.stated.positions[right], self.stated.object_shape)
        return operator, self.readings.reshape(self.wrong.size, -1)[right].ravel()


def choose(
    scan: dict[str, np.ndarray], frames: int, wrong: int, beside: tuple[float, float] = (0, 0), seed: int = 0
) -> Selection:
    """Frames around a place, some of them at the recorded instead of the true position."""
    true, recorded = scan["true_positions"], scan["recorded_positions"]
    centre = np.median(true, axis=0) + beside
    chosen = np.argsort(np.linalg.norm(true - centre, axis=1), kind="stable")[:frames]
    true, recorded = true[chosen], recorded[chosen]
    apart = np.flatnonzero(np.linalg.norm(true - recorded, axis=1) >= APART)
    misplaced = np.zeros(len(chosen), bool)
    misplaced[np.random.default_rng(seed).choice(apart, wrong, replace=False)] = True
    right = np.rint(true).astype(int)
    stated = np.where(misplaced[:, np.newaxis], np.rint(recorded).astype(int), right)
    corner = np.minimum(right.min(axis=0), stated.min(axis=0))
    shape = np.maximum(right.max(axis=0), stated.max(axis=0)) - corner + scan["probe"].shape
    operators = [
        rp.simulate.Ptychography(scan["probe"], places - corner, tuple(shape.tolist())) for places in (right, stated)
    ]
    readings = scan["patterns"][chosen].astype(np.float64).ravel()
    return Selection(operators[0], operators[1], readings, misplaced)


def plain_flow(operator: rp.simulate.Ptychography, readings: np.ndarray, iterations: int = ITERATIONS) -> np.ndarray:
    """Amplitude flow with illumination preconditioning from a flat start."""
    amplitudes, light = np.sqrt(readings), operator.column_energies
    flat = np.ones(operator.shape[1], complex)
    lengths = np.abs(operator @ flat)
    signal = flat * (amplitudes @ lengths) / (lengths @ lengths)
    scaled = light + REGULARISED * light.max()
    for _ in range(iterations):
        field = operator @ signal
        lengths = np.abs(field)
        pull = np.where(lengths > 0, (amplitudes / np.maximum(lengths, np.finfo(float).tiny) - 1) * field, 0)
        signal = signal + operator.rmatvec(pull) / scaled
    return signal


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="file with the scan, or the package that holds it")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--wrong", type=int, default=6)
    parser.add_argument("--row", type=float, default=0.0, help="pixels below the middle")
    parser.add_argument("--column", type=float, default=0.0, help="pixels right of the middle")
    parser.add_argument("--seed", type=int, default=0, help="for which frames are misplaced")
    parser.add_argument("--picture", type=Path, help="draw plain method, ours and reference")
    return parser.parse_args()


def main() -> None:
    """Fit, and print the figures."""
    asked = _arguments()
    path = find_scan(asked.data)
    if path is None:
        print(WANTED)
        return
    selection = choose(load_scan(path), asked.frames, asked.wrong, (asked.row, asked.column), asked.seed)
    since = perf_counter()
    reference = plain_flow(selection.true, selection.readings)
    plain_time = perf_counter() - since
    without = plain_flow(*selection.without_wrong())
    plain = plain_flow(selection.stated, selection.readings)
    model = rp.RobustPhaseRetrieval("auto")
    since = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(selection.stated, selection.readings, groups=selection.stated.frames)
    time = perf_counter() - since
    lit = lit_pixels(selection)
    far = {
        name: rp.distance(signal[lit], reference[lit], relative=True)
        for name, signal in (("with them", plain), ("without them", without), ("ours", model.signal_))
    }
    area = roc_auc_score(selection.wrong, -model.group_weights_)
    flagged = model.flag_groups()
    print(f"{asked.frames} frames, {asked.wrong} misplaced, {asked.row:g} and {asked.column:g} pixels off the middle")
    print(f"distance to the reference: {', '.join(f'{name} {value:.4f}' for name, value in far.items())}")
    print(f"ratio of ours to amplitude flow without the misplaced frames: {far['ours'] / far['without them']:.3f}")
    print(f"area under the curve of misplaced frames: {area:.4f}")
    print(f"found {flagged[selection.wrong].sum()} of {asked.wrong}, wrongly flagged {flagged[~selection.wrong].sum()}")
    print(f"time: {plain_time:.1f} s for {ITERATIONS} iterations, ours {time:.1f} s ({time / plain_time:.2f} times)")
    print(f"settled: {model.converged_}", *(str(one.message) for one in caught), sep="\n")
    if asked.picture is not None:
        _draw(asked.picture, selection, {"plain": plain, "ours": model.signal_, "reference": reference})


def lit_pixels(selection: Selection) -> np.ndarray:
    """Pixels that get enough light to be compared."""
    light = selection.true.column_energies
    return light > LIT * light.max()


def turned_phases(selection: Selection, signal: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Phases of a picture, turned to those of the reference; those of unlit pixels left out."""
    lit = lit_pixels(selection)
    turn = np.vdot(signal[lit], reference[lit])
    return np.where(lit, np.angle(signal * turn / abs(turn)), np.nan).reshape(selection.true.object_shape)


def _draw(path: Path, selection: Selection, signals: dict[str, np.ndarray]) -> None:
    """Phases side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(signals), 4), layout="constrained")
    reference = signals["reference"]
    for axes, (name, signal) in zip(figure.subplots(1, len(signals)), signals.items(), strict=True):
        phases = turned_phases(selection, signal, reference)
        axes.imshow(phases, cmap="gray", vmin=np.nanquantile(phases, 0.01), vmax=np.nanquantile(phases, 0.99))
        axes.set_title(name)
        axes.set_axis_off()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
