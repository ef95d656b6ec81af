"""
Covariance and outliers that are not far out
============================================

A tenth of the rows sits in a tight group, nearer to the centre than most good rows.
Distances do not show it, and it draws the covariance towards itself.
``RobustCovariance`` and ``RobustEnvelope`` see the one direction in which the group
changes the shape of the data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import robustphase as rp

rng = np.random.default_rng(0)
n_rows, n_features = 3000, 60
widths = np.geomspace(3, 0.3, n_features)
X = rng.standard_normal((n_rows, n_features)) * widths
bad = np.arange(n_rows) < n_rows // 10
X[bad] = 0.7 * widths + 0.05 * X[bad]

# %%
# The covariance: largest error in any direction, beside that of the clean rows alone.
truth = np.diag(widths**2)
found = {
    "clean rows only": np.cov(X[~bad].T),
    "all rows": np.cov(X.T),
    "RobustCovariance": rp.RobustCovariance(contamination=0.1).fit(X).covariance_,
}
whitened = {
    name: np.linalg.norm(covariance / np.outer(widths, widths) - np.eye(n_features), 2)
    for name, covariance in found.items()
}
for name, error in whitened.items():
    print(f"{name}: {error:.2f}")

# %%
# The outliers: ranked by their distance, and by the envelope.
centred = X - X.mean(axis=0)
distances = np.sqrt(np.sum(centred @ np.linalg.inv(np.cov(X.T)) * centred, axis=1))
envelope = rp.RobustEnvelope(contamination=0.1).fit(X)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
for ax, name, scores in (
    (axes[0], "Mahalanobis distance", distances),
    (axes[1], "outlyingness", envelope.outlyingness_),
):
    bins = np.linspace(scores.min(), scores.max(), 60)
    ax.hist(scores[~bad], bins, color="#0a6c89", label="good rows")
    ax.hist(scores[bad], bins, color="#b3470f", alpha=0.8, label="tight group")
    ax.set(
        xlabel=name,
        ylabel="rows",
        yscale="log",
        title=f"area under the curve {roc_auc_score(bad, scores):.3f}",
    )
axes[1].legend()

# %%
# New rows are judged as those of the fit: ``predict`` returns -1 for outliers.
new = np.vstack(
    (
        rng.standard_normal((5, n_features)) * widths,
        0.7 * widths + 0.02 * rng.standard_normal((5, n_features)),
    )
)
print(envelope.predict(new))

# sphinx_gallery_start_ignore
assert (
    whitened["RobustCovariance"]
    < 1.2 * whitened["clean rows only"]
    < whitened["all rows"]
)
assert roc_auc_score(bad, envelope.outlyingness_) > 0.99
assert (envelope.predict(new[5:]) == -1).all()
# sphinx_gallery_end_ignore
