"""
Attack your own method
======================

A list of attacks tells how a method fares under those attacks; an adversary who knows
the method will find others. ``red_team`` searches for the attack under which a method
errs most. Here it gets the same small budget against a spectral method that clips large
responses, and against the estimator of this library.
"""

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp


class ClippedSpectral:
    """The leading eigenvector of rows weighted by clipped responses."""

    def fit(self, A, y):
        """The direction, with a length that explains the median response."""
        clipped = np.clip(y, 0, 5 * np.median(np.abs(y)))
        vector = np.linalg.eigh(A.T @ (clipped[:, None] * A))[1][:, -1]
        self.signal_ = vector * np.sqrt(
            max(np.median(y) / np.median((A @ vector) ** 2), 0)
        )
        return self


asked = {
    "contamination": 0.1,
    "n": 10,
    "m": 400,
    "workers": 1,
    "seed": 0,
    "confirm": 4,
    "top": 2,
}
clipped = rp.experiments.red_team(ClippedSpectral(), budget=60, **asked)
ours = rp.experiments.red_team(
    rp.RobustPhaseRetrieval(contamination=0.1), budget=60, **asked
)
print(clipped.report())

# %%
# The unavoidable error is that of two signals which a tenth of rewritten samples makes
# look the same: no method does better.
names = ["nobody attacks", "worst attack found"]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for shift, result, label, colour in (
    (-0.2, clipped, "clipped spectral", "#b3470f"),
    (0.2, ours, "robustphase", "#0a6c89"),
):
    axes[0].bar(
        np.arange(2) + shift,
        [result.clean_error, result.error],
        0.4,
        label=label,
        color=colour,
    )
    axes[1].plot(np.maximum.accumulate(result.history), color=colour, label=label)
axes[0].axhline(
    ours.unavoidable_error, color="black", linestyle="--", label="no method avoids"
)
axes[0].set(xticks=range(2), xticklabels=names, ylabel="relative error, fresh worlds")
axes[0].legend()
axes[1].set(xlabel="attacks tried", ylabel="worst so far, worlds of the search")
axes[1].legend()

# sphinx_gallery_start_ignore
assert ours.error < clipped.error
# sphinx_gallery_end_ignore
