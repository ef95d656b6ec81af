"""
Few photons
===========

Two counts per reading in the mean, most of them zero, one or two; one reading in ten
belongs to another pattern. At such counts a wrong reading looks as ordinary as a right
one. The library sees that the responses are counts and fits them as such, with an
unknown dark count; Wirtinger flow for Poisson counts believes all of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

world = rp.simulate.make_counts(
    n=64, m=6000, mean_count=2.0, dark=0.2, contamination=0.1, attack="permute", seed=0
)
model = rp.RobustPhaseRetrieval(contamination=0.1).fit(world.A, world.y)
plain = rp.baselines.wirtinger_flow(world.A, world.y)
poisson = rp.baselines.poisson_wirtinger_flow(world.A, world.y)

print(
    "the noise was taken for:",
    model.noise_model_.kind,
    "with a dark count of",
    round(float(model.noise_mean_), 2),
)
errors = {
    "Wirtinger flow": rp.distance(plain.signal, world.truth, relative=True),
    "Wirtinger flow\nfor Poisson counts": rp.distance(
        poisson.signal, world.truth, relative=True
    ),
    "robustphase": rp.distance(model.signal_, world.truth, relative=True),
}

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].barh(
    list(errors), list(errors.values()), color=["#8a8a8a", "#8a8a8a", "#0a6c89"]
)
axes[0].set(xlabel="relative error of the signal")
axes[0].invert_yaxis()
rp.plot.variance(model, world.A, world.y, ax=axes[1])

# %%
# The picture on the right shows the noise: residuals of counts grow as the root of the
# mean.
#
# Standard errors tell what the photons leave open.
standard = model.standard_errors(world.A, world.y)
expected = np.linalg.norm(standard) / np.linalg.norm(world.truth)
print(f"error expected from them: {expected:.3f}")
print(f"error: {errors['robustphase']:.3f}")

# sphinx_gallery_start_ignore
assert model.noise_model_.kind == "poisson"
assert errors["robustphase"] < 0.8 * min(
    value for name, value in errors.items() if name != "robustphase"
)
# sphinx_gallery_end_ignore
