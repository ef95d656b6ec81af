"""
An unknown background
=====================

One row of an optical transmission matrix: a camera that adds 2 to every reading, a
stretch of patterns that were out of register, and a pixel that reads zero now and then.
With ``noise_mean="unknown"`` the background is fitted along.
"""

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

rng = np.random.default_rng(7)
field = rng.standard_normal(64) / 8
shown = rng.standard_normal((1500, 64))
seen = (shown @ field) ** 2 + 2.0 + 0.3 * rng.standard_t(3, 1500)
seen[rng.random(1500) < 0.04] = 0.0  # dead
believed = shown.copy()
believed[600:680] = rng.standard_normal((80, 64))  # other patterns than on file

model = rp.RobustPhaseRetrieval(contamination="auto", noise_mean="unknown").fit(
    believed, seen
)
print(f"background {model.noise_mean_:.2f}")
print(f"error {rp.distance(model.signal_, field, relative=True):.3f}")

# %%
# Least squares may even be told the background; it believes the dead readings and the
# misplaced patterns.
plain = rp.baselines.wirtinger_flow(believed, seen - 2.0)
print(f"least squares: {rp.distance(plain.signal, field, relative=True):.3f}")

# %%
# The flags show both faults: the stretch, and the scattered dead readings.
flags = model.flag_samples()
print(f"flagged between 600 and 680: {flags[600:680].mean():.0%}")
print(f"flagged elsewhere: {np.delete(flags, np.s_[600:680]).mean():.0%}")
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
rp.plot.predictions(model, believed, seen, ax=axes[0])
rp.plot.flags(model, believed, seen, ax=axes[1])

# sphinx_gallery_start_ignore
assert abs(model.noise_mean_ - 2.0) < 0.1
assert rp.distance(model.signal_, field, relative=True) < 0.5 * rp.distance(
    plain.signal, field, relative=True
)
# sphinx_gallery_end_ignore
