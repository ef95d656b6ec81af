"""A real ptychographic scan, from a file or from the package that it comes in.

The source distribution of the package tike (0.26.0, BSD-3) holds, as test data, 481 X-ray diffraction patterns with the positions
that were recorded and the true ones, collected at the Hard X-ray Nanoprobe of the Center for Nanoscale Materials, and a first
guess of the probe. ``pip download tike==0.26.0 --no-deps --no-binary :all:`` brings it. The probe is then estimated along with
the object, from frames at their true positions. A ``.npz`` file of one's own holds ``patterns`` (frames, height, width),
``true_positions`` and ``recorded_positions`` (frames, 2) and ``probe`` (height, width).
"""

from __future__ import annotations

import bz2
import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import fft

#: What the scan is called in the package, and the package.
MEMBER, PACKAGE = "position-error-247.pickle.bz2", "tike-0.26.0.tar.gz"
WANTED = (
    f"no scan here. Pass --data with a .npz file, or the source distribution {PACKAGE}, which "
    "`pip download tike==0.26.0 --no-deps --no-binary :all:` brings. Skipped."
)
#: Frames that the probe is estimated from, steps, and those of the object alone before.
PROBE_FRAMES, PROBE_STEPS, OBJECT_STEPS = 100, 80, 5
#: Least energy of a pixel in a step, over the largest.
REGULARISED = 0.05
#: All that a pickled array needs.
HARMLESS = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
}


def find_scan(asked: Path | None) -> Path | None:
    """The file that was asked for, or the package in the present folder; None where there is neither."""
    if asked is not None and not asked.exists():
        raise SystemExit(f"there is no file {asked}.")
    path = Path(PACKAGE) if asked is None else asked
    return path if path.exists() else None


def load_scan(path: Path) -> dict[str, np.ndarray]:
    """Patterns, true and recorded positions, and probe."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in ("patterns", "true_positions", "recorded_positions", "probe")}
    with tarfile.open(path) as package:
        inside = [member for member in package.getmembers() if member.name.endswith(f"/{MEMBER}")]
        if not inside:
            raise SystemExit(f"{path.name} holds no {MEMBER}: it is not the source distribution {PACKAGE}.")
        stored = package.extractfile(inside[0])
        assert stored is not None
        data, recorded, true, probe = _Arrays(io.BytesIO(bz2.decompress(stored.read()))).load()
    patterns = np.reshape(data, (-1, *np.shape(data)[-2:]))
    positions = {
        name: np.reshape(one, (-1, 2)) for name, one in (("true_positions", true), ("recorded_positions", recorded))
    }
    guess = np.reshape(probe, (-1, *patterns.shape[1:]))[0]
    return {"patterns": patterns, **positions, "probe": estimate_probe(patterns, positions["true_positions"], guess)}


def estimate_probe(
    patterns: np.ndarray,
    positions: np.ndarray,
    guess: np.ndarray,
    *,
    frames: int = PROBE_FRAMES,
    steps: int = PROBE_STEPS,
) -> np.ndarray:
    """Probe and object in turn by amplitude flow, from the frames in the middle, a flat object and a guess of the probe."""
    chosen = np.argsort(np.linalg.norm(positions - np.median(positions, axis=0), axis=1), kind="stable")[:frames]
    corners = np.rint(positions[chosen]).astype(int)
    corners -= corners.min(axis=0)
    height, width = guess.shape
    patches = [(slice(row, row + height), slice(column, column + width)) for row, column in corners.tolist()]
    amplitudes = np.sqrt(patterns[chosen].astype(np.float64))
    probe = guess.astype(np.complex128)
    probe *= np.sqrt((amplitudes**2).sum() / len(chosen) / (np.abs(probe) ** 2).sum())
    picture = np.ones(corners.max(axis=0) + guess.shape, complex)
    for step in range(steps):
        lit = np.stack([picture[patch] for patch in patches])
        fields = fft.fft2(lit * probe, norm="ortho")
        lengths = np.maximum(np.abs(fields), np.finfo(float).tiny)
        pulls = fft.ifft2((amplitudes / lengths - 1) * fields, norm="ortho")
        light, total = np.zeros(picture.shape), np.zeros(picture.shape, complex)
        for patch, pull in zip(patches, pulls, strict=True):
            light[patch] += np.abs(probe) ** 2
            total[patch] += probe.conj() * pull
        picture += total / (light + REGULARISED * light.max())
        if step >= OBJECT_STEPS:
            seen = (np.abs(lit) ** 2).sum(axis=0)
            probe += (lit.conj() * pulls).sum(axis=0) / (seen + REGULARISED * seen.max())
    return probe


class _Arrays(pickle.Unpickler):
    """Reads pickled arrays and nothing else: what comes from elsewhere may hold programs."""

    def find_class(self, module: str, name: str) -> Any:
        """What an array is made of; anything else is refused."""
        if (module, name) in HARMLESS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"the scan holds {module}.{name}, which is no part of an array")
