"""
Ptychography with misplaced frames
==================================

A lensless microscope moves a spot of light over an object and records a diffraction
pattern at every place. Where the stage has not moved as it was told, whole frames are
wrong. Readings of one frame are good or bad together: told so by ``groups=``, the fit
finds the misplaced frames.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import robustphase as rp

rng = np.random.default_rng(0)
size, side = 44, 16
along = np.arange(side) - (side - 1) / 2
square = along[:, None] ** 2 + along**2
probe = np.sqrt(2000) * np.exp(-square / 18 + 0.15j * square)
corners = np.stack(
    np.meshgrid(*[np.arange(0, size - side + 1, 4)] * 2, indexing="ij"), axis=-1
).reshape(-1, 2)
positions = np.clip(corners + rng.integers(-1, 2, corners.shape), 0, size - side)

# %%
# The object is nearly transparent: its picture is in the phases. Photons are counted.
waves = gaussian_filter(rng.standard_normal((size, size)), 1.5)
picture = np.exp(0.5j * waves / waves.std())
scan = rp.simulate.Ptychography(probe, positions, (size, size))
readings = rng.poisson(np.abs(scan @ picture.ravel()) ** 2).astype(float)

# %%
# Six of the 64 frames are not where the file says.
inner = np.flatnonzero(((positions > 3) & (positions < size - side - 3)).all(axis=1))
misplaced = np.isin(np.arange(len(positions)), rng.choice(inner, 6, replace=False))
stated = positions + misplaced[:, None] * rng.choice([-3, 3], positions.shape)
stated_scan = rp.simulate.Ptychography(probe, stated, (size, size))

# %%
# One fit judges every reading on its own, the other one frames. Pixels that hardly any
# light has reached are not known.
single = rp.RobustPhaseRetrieval(contamination=0.2).fit(stated_scan, readings)
grouped = rp.RobustPhaseRetrieval(contamination=0.2).fit(
    stated_scan, readings, groups=stated_scan.frames
)
found = grouped.flag_groups()
print(f"misplaced frames found: {found[misplaced].sum()} of {misplaced.sum()}")
print(f"others given up: {found[~misplaced].sum()}")

lit = ~grouped.unseen_
figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
signals = {
    "object": picture.ravel(),
    "readings on their own": single.signal_,
    "readings by frames": grouped.signal_,
}
for ax, (name, signal) in zip(axes, signals.items(), strict=False):
    # A global phase cannot be known.
    turned = signal * np.vdot(signal[lit], picture.ravel()[lit])
    shown = np.where(lit, np.angle(turned), np.nan).reshape(size, size)
    ax.imshow(shown, cmap="gray", vmin=-1.2, vmax=1.2)
    error = rp.distance(signal[lit], picture.ravel()[lit], relative=True)
    ax.set_title(name if name == "object" else f"{name}\nrelative error {error:.3f}")
    ax.set_axis_off()
for chosen, colour, marker, name in (
    (~found, "#0a6c89", "o", "kept"),
    (found, "#b3470f", "x", "given up"),
):
    axes[3].scatter(
        *(stated[chosen, ::-1] + side / 2).T, color=colour, marker=marker, label=name
    )
axes[3].scatter(
    *(stated[misplaced, ::-1] + side / 2).T,
    s=120,
    facecolor="none",
    edgecolor="black",
    label="misplaced",
)
axes[3].set(
    title="frames, where they are said to be",
    aspect="equal",
    xlim=(0, size),
    ylim=(size, 0),
)
axes[3].legend(
    fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3
)

# %%
# The evidence of all frames. Which of them is wrong is known from the simulation only.
rp.plot.groups(grouped)

# sphinx_gallery_start_ignore
assert found[misplaced].all()
assert found[~misplaced].mean() < 0.05
assert rp.distance(grouped.signal_[lit], picture.ravel()[lit]) < rp.distance(
    single.signal_[lit], picture.ravel()[lit]
)
# sphinx_gallery_end_ignore
