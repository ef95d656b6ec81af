"""
A first fit in twenty lines
===========================

A picture of 16 × 16 pixels, seen through 5,000 random patterns by a detector that
records intensities only. A tenth of the samples tells of another signal, five times as
strong. Plain least squares follows them; the robust fit shows the picture.
"""

import matplotlib.pyplot as plt

import robustphase as rp

world = rp.simulate.make_world(
    n=256, m=5000, contamination=0.1, attack="decoy_loud", signal="image", seed=0
)
A, y = world.A, world.y  # your data: patterns as rows of A, intensities y

model = rp.RobustPhaseRetrieval(contamination=0.1).fit(A, y)
plain = rp.baselines.wirtinger_flow(A, y)

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
found = {"truth": world.truth, "plain": plain.signal, "robustphase": model.signal_}
for ax, (name, signal) in zip(axes, found.items(), strict=True):
    error = rp.distance(signal, world.truth, relative=True)
    sign = 1 if signal @ world.truth > 0 else -1  # which of the two cannot be known
    picture = sign * signal.reshape(16, 16)
    ax.imshow(picture, cmap="gray", vmin=world.truth.min(), vmax=world.truth.max())
    ax.set_title(f"{name}\nrelative error {error:.2f}")
    ax.set_axis_off()

# %%
# The fit also says which samples it did not believe, and whether its own assumptions
# hold.
flags = model.flag_samples()
print(f"bad samples that were flagged: {flags[world.touched].mean():.0%}")
print(f"good samples that were flagged: {flags[world.clean].mean():.1%}")
print(model.model_check_)

# sphinx_gallery_start_ignore
assert rp.distance(model.signal_, world.truth, relative=True) < 0.2
assert rp.distance(plain.signal, world.truth, relative=True) > 0.5
# sphinx_gallery_end_ignore
