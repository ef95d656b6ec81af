"""
Can I trust this answer?
========================

A fit answers whatever it is given. Here the file holds amplitudes, the roots of
intensities, and nobody noticed. Every fit ends with a test of its own model; where that
fails severely the fit has not converged, and says what the likely cause is.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

world = rp.simulate.make_world(
    n=40, m=3000, contamination=0.05, attack="decoy", noise_std=0.1, seed=1
)
amplitudes = np.sqrt(np.abs(world.y))  # what the file holds

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    wrong = rp.RobustPhaseRetrieval(contamination=0.1).fit(world.A, amplitudes)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")
print("converged:", wrong.converged_, " certificate:", wrong.certificate_)

# %%
# Done as it says:
right = rp.RobustPhaseRetrieval(contamination=0.1).fit(world.A, amplitudes**2)
print("converged:", right.converged_, f" certificate: {right.certificate_:.2f}")
print(f"relative error: {rp.distance(right.signal_, world.truth, relative=True):.3f}")

# %%
# Each check has a figure and a limit; left the amplitudes, right the intensities.
figure, axes = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
for ax, fit, name in ((axes[0], wrong, "amplitudes"), (axes[1], right, "intensities")):
    rp.plot.model_check(fit, ax=ax)
    ax.set_title(name)

# %%
# Measured against predicted responses: squares of ``a·x`` cannot follow amplitudes.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
rp.plot.predictions(wrong, world.A, amplitudes, ax=axes[0])
rp.plot.predictions(right, world.A, amplitudes**2, ax=axes[1])

# sphinx_gallery_thumbnail_number = 2
# sphinx_gallery_start_ignore
assert not wrong.converged_
assert any("magnitudes" in str(warning.message) for warning in caught)
assert right.converged_
# sphinx_gallery_end_ignore
