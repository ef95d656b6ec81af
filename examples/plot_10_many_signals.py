"""
Many signals that share wrong rows
==================================

Twenty signals behind the same rows, as the pixels of a camera are. A twelfth of the
rows on file is slightly wrong: each single signal finds its residual there a little too
wide, nothing more. All signals together know which rows they are.
"""

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

rng = np.random.default_rng(1)
n, m, signals = 30, 1200, 20
shown = rng.standard_normal((m, n))
X = rng.standard_normal((n, signals)) / np.sqrt(n)
Y = (shown @ X) ** 2 + 0.3 * rng.standard_t(4, (m, signals))
wrong = np.arange(m) % 12 == 0
A = shown.copy()
A[wrong] = 0.8 * shown[wrong] + 0.6 * rng.standard_normal((wrong.sum(), n))

together = rp.RobustPhaseRetrieval(contamination=0.15).fit(A, Y)
alone = [
    rp.RobustPhaseRetrieval(contamination=0.15).fit(A, Y[:, k]) for k in range(signals)
]

# %%
errors = np.array(
    [
        [
            rp.distance(fit.signal_, X[:, k], relative=True)
            for k, fit in enumerate(alone)
        ],
        [
            rp.distance(together.signal_[k], X[:, k], relative=True)
            for k in range(signals)
        ],
    ]
)
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
axes[0].hist(
    [alone[0].weights_[~wrong], alone[0].weights_[wrong]],
    20,
    label=["right rows", "wrong rows"],
    density=True,
)
axes[0].set(title="one signal alone", xlabel="weight of the row", ylabel="density")
axes[1].hist(
    [together.row_weights_[~wrong], together.row_weights_[wrong]], 20, density=True
)
axes[1].set(title="twenty signals together", xlabel="weight of the row")
axes[0].legend()
limit = 1.1 * errors.max()
axes[2].plot([0, limit], [0, limit], color="grey", linewidth=1)
axes[2].plot(*errors, "o", color="#0a6c89")
axes[2].set(title="relative error", xlabel="alone", ylabel="together")
by_one, by_all = (
    np.mean(alone[0].weights_[wrong] < 0.5),
    np.mean(together.row_weights_[wrong] < 0.5),
)
print(f"wrong rows found: by one signal {by_one:.0%}, by all {by_all:.0%}")
print(
    f"median error alone {np.median(errors[0]):.3f}, together {np.median(errors[1]):.3f}"
)

# sphinx_gallery_start_ignore
assert np.median(errors[1]) < np.median(errors[0])
assert np.mean(together.row_weights_[wrong] < 0.5) > 0.85
# sphinx_gallery_end_ignore
