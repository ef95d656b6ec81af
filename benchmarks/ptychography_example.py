"""Misplaced frames in a real ptychographic scan, in pictures: the plain method, ours, the reference, and the frames found bad.

``python -m benchmarks.ptychography_example [--data scan.npz or tike-0.26.0.tar.gz] [--out ptychography.png]``

Sixty frames around the middle of the scan, twelve of them left at their recorded positions, which are wrong by two pixels and
more. Amplitude flow takes all frames for right; the fit is told which readings belong to one frame, and nothing else. The
reference is amplitude flow on true positions. Takes half a minute. Without the data it says where to get them, and ends.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from benchmarks.ptychography import Selection, choose, lit_pixels, plain_flow, turned_phases
from benchmarks.ptychography_scan import WANTED, find_scan, load_scan

FRAMES, WRONG = 60, 12


def main() -> None:
    """Fit, print what was found, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="file with the scan, or the package that holds it")
    parser.add_argument("--out", type=Path, default=Path("ptychography.png"), help="where to draw")
    asked = parser.parse_args()
    path = find_scan(asked.data)
    if path is None:
        print(WANTED)
        return
    selection = choose(load_scan(path), FRAMES, WRONG)
    reference, plain = (plain_flow(scan, selection.readings) for scan in (selection.true, selection.stated))
    model = rp.RobustPhaseRetrieval("auto")
    with warnings.catch_warnings():
        # A scan of a real instrument never follows the model to the last digit; what the check says is printed.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(selection.stated, selection.readings, groups=selection.stated.frames)
    lit = lit_pixels(selection)
    for name, signal in (("plain method", plain), ("ours", model.signal_)):
        print(f"{name}: {rp.distance(signal[lit], reference[lit], relative=True):.3f} from the reference")
    found = model.flag_groups()
    print(f"misplaced frames found: {found[selection.wrong].sum()} of {WRONG}, others: {found[~selection.wrong].sum()}")
    draw(asked.out, selection, {"plain method": plain, "ours": model.signal_, "reference": reference}, found)
    print(f"drawn: {asked.out}")


def draw(path: Path, selection: Selection, signals: dict[str, np.ndarray], found: np.ndarray) -> None:
    """Phases of the objects side by side, and where the frames are said to be."""
    figure = Figure(figsize=(4 * (len(signals) + 1), 4), layout="constrained")
    *panels, last = figure.subplots(1, len(signals) + 1)
    for axes, (name, signal) in zip(panels, signals.items(), strict=True):
        phases = _cropped(turned_phases(selection, signal, signals["reference"]))
        axes.imshow(phases, cmap="gray", vmin=np.nanquantile(phases, 0.01), vmax=np.nanquantile(phases, 0.99))
        axes.set_title(name)
        axes.set_axis_off()
    rows, columns = (selection.stated.positions + np.array(selection.stated.probe.shape) / 2).T
    for chosen, marker, label in (
        (~selection.wrong & ~found, "o", "right"),
        (selection.wrong & found, "x", "misplaced, found"),
        (selection.wrong & ~found, "s", "misplaced, not found"),
        (~selection.wrong & found, "^", "right, given up"),
    ):
        if chosen.any():
            last.scatter(columns[chosen], rows[chosen], marker=marker, label=f"{label} ({chosen.sum()})")
    last.invert_yaxis()
    last.set_aspect("equal")
    last.set_title("frames, where they are said to be")
    last.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2)
    figure.savefig(path, dpi=80)


def _cropped(picture: np.ndarray) -> np.ndarray:
    """The part of a picture that is known."""
    rows, columns = np.nonzero(np.isfinite(picture))
    return picture[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


if __name__ == "__main__":
    main()
