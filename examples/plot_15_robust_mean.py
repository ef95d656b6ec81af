"""
A robust mean and a robust direction
====================================

No phases here: 2,000 points in 50 dimensions, a tenth of them in a group as far away as
the points themselves are wide. In 50 dimensions no point of the group is unusual by its
distance, and medians of coordinates are moved by all of it.
"""

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

rng = np.random.default_rng(0)
points = rng.standard_normal((2000, 50))
points[:, 0] *= 2.0
towards = np.append(0, np.ones(49)) / 7  # a direction that no coordinate shows
points[:200] = 7 * towards + 0.1 * rng.standard_normal((200, 50))

found = rp.robust_mean(points, contamination=0.1)
errors = {
    "mean": np.linalg.norm(points.mean(axis=0)),
    "median of coordinates": np.linalg.norm(np.median(points, axis=0)),
    "rp.robust_mean": np.linalg.norm(found.location),
    "mean of the good": np.linalg.norm(points[200:].mean(axis=0)),
}
for name, error in errors.items():
    print(f"{name}: {error:.3f}")
print(f"variance along the worst direction that is left: {found.top_variance:.2f}")

# %%
# The direction of most variance: 4 along the first axis among good points, and more
# towards the group.
direction = rp.leading_eigenvector(points, contamination=0.1)
plain = np.linalg.eigh(np.cov(points.T))[1][:, -1]
print(f"cosine with the first axis: robust {abs(direction.vector[0]):.2f}")
print(f"cosine with the first axis: plain {abs(plain[0]):.2f}")

# %%
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
plane = np.stack((np.eye(50)[0], towards))
ax.scatter(
    *plane @ points[200:].T, s=6, color="#0a6c89", alpha=0.4, label="good points"
)
ax.scatter(*plane @ points[:200].T, s=12, color="#b3470f", marker="x", label="group")
for vector, colour, label in (
    (direction.vector, "black", "rp.leading_eigenvector"),
    (plain, "#8a8a8a", "eigenvector of the covariance"),
):
    ax.plot(*np.outer(plane @ vector, [-6, 6]), color=colour, linewidth=2, label=label)
ax.set(xlabel="first coordinate", ylabel="towards the group", aspect="equal")
ax.legend(fontsize="small", loc="lower right")

# sphinx_gallery_start_ignore
assert errors["rp.robust_mean"] < 0.5 * errors["median of coordinates"]
assert abs(direction.vector[0]) > 0.9 > abs(plain[0])
# sphinx_gallery_end_ignore
