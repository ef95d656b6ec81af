"""
A transmission matrix behind a micromirror device
=================================================

Behind a scattering medium the field on every camera pixel is a fixed linear function of
the mirrors that are switched on. The mirrors are on or off, the field is complex, and
the camera sees intensities. Each row of the transmission matrix is a phase-retrieval
problem behind the same patterns; whoever knows a row can focus light on its pixel.
"""

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

rng = np.random.default_rng(0)
mirrors, pixels, shown = 32, 25, 1200
matrix = (
    rng.standard_normal((pixels, mirrors)) + 1j * rng.standard_normal((pixels, mirrors))
) / np.sqrt(2)
patterns = rng.integers(0, 2, (shown, mirrors)).astype(float)
readings = np.abs(patterns @ matrix.T) ** 2 + rng.standard_normal((shown, pixels))

# %%
# What goes wrong: spikes in 3% of the readings, and 3% of the patterns on file are not
# those that were shown.
readings[rng.random(readings.shape) < 0.03] += 200
misplaced = rng.choice(shown, 36, replace=False)
on_file = patterns.copy()
on_file[misplaced] = rng.integers(0, 2, (36, mirrors))

# %%
# One fit for all pixels. It has to be told that a complex field stands behind real
# patterns; that these are on and off, with a mean, it finds out.
model = rp.RobustPhaseRetrieval(contamination=0.1, field="complex").fit(
    on_file, readings
)
plain = np.stack(
    [
        rp.baselines.wirtinger_flow(on_file, column, field="complex").signal
        for column in readings.T
    ]
)


def similarity(found):
    """Correlation of each row with the true one, or with its conjugate."""
    # Behind real patterns a row and its conjugate are the same.
    product = (
        np.abs(np.sum(matrix.conj() * found, axis=1)),
        np.abs(np.sum(matrix * found, axis=1)),
    )
    return np.maximum(*product) / (
        np.linalg.norm(matrix, axis=1) * np.linalg.norm(found, axis=1)
    )


ours, theirs = similarity(np.asarray(model.signal_)), similarity(plain)
print("smallest correlation of a row with the true one")
print(f"ours {ours.min():.3f}, plain {theirs.min():.3f}")

# %%
# A pattern that is wrong is wrong for every pixel, so all of them vote:
# ``row_weights_``.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, values, name in (
    (axes[0], theirs, "plain Wirtinger flow"),
    (axes[1], ours, "robustphase"),
):
    image = ax.imshow(values.reshape(5, 5), vmin=0, vmax=1, cmap="viridis")
    ax.set_title(f"correlation of rows\n{name}")
    ax.set_axis_off()
figure.colorbar(image, ax=axes[:2], shrink=0.8)
wrong = np.isin(np.arange(shown), misplaced)
axes[2].hist(
    [model.row_weights_[~wrong], model.row_weights_[wrong]],
    bins=20,
    label=["as on file", "misplaced"],
)
axes[2].set(xlabel="weight of the pattern", ylabel="patterns", yscale="log")
axes[2].legend()

# sphinx_gallery_start_ignore
assert ours.min() > 0.95
assert ours.min() > theirs.min()
assert model.row_weights_[wrong].max() < 0.5 < model.row_weights_[~wrong].mean()
# sphinx_gallery_end_ignore
