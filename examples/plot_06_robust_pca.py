"""
Principal components that stay
==============================

Spectra with two lines of varying strength, 150 of them at 400 wavelengths, and an
artefact in a tenth: a spike, upwards in one half of them and downwards in the other.
Opposite outliers do not move the mean, but they take the first component of an ordinary
analysis. ``RobustPCA`` has scikit-learn's interface, and there may be more features
than rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

import robustphase as rp

rng = np.random.default_rng(0)
wavelength = np.linspace(400, 700, 400)
lines = np.exp(-(((wavelength - np.array([[475.0], [580.0]])) / 15) ** 2))
clean = (
    1
    + rng.standard_normal((150, 2)) * [3, 1.5] @ lines
    + 0.3 * rng.standard_normal((150, 400))
)
X = clean.copy()
bad = np.arange(150) % 10 == 0
X[bad] += np.resize([16, -16], bad.sum())[:, None] * np.exp(
    -(((wavelength - 640) / 9) ** 2)
)

ordinary = PCA(n_components=2).fit(X)
robust = rp.RobustPCA(n_components=2, contamination=0.1).fit(X)
reference = PCA(n_components=2).fit(clean)

# %%
# The components, beside those of the spectra without artefact.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", sharey=True)
for row, ax in enumerate(axes):
    expected = reference.components_[row]
    for name, model, style in (
        ("PCA", ordinary, "#b3470f"),
        ("RobustPCA", robust, "#0a6c89"),
    ):
        cosine = model.components_[row] @ expected
        ax.plot(
            wavelength,
            np.sign(cosine) * model.components_[row],
            color=style,
            label=f"{name}, cosine {abs(cosine):.2f}",
        )
    ax.plot(wavelength, expected, "k:", label="without artefact")
    ax.set(title=f"component {row + 1}", xlabel="wavelength, nm")
    ax.legend(fontsize="small")

# %%
# In the plane of the components: to the ordinary analysis the spread of the data is
# that of the artefact. The spoilt rows have lost their weight in the robust one.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, name, model in ((axes[0], "PCA", ordinary), (axes[1], "RobustPCA", robust)):
    at = model.transform(X)
    ax.scatter(*at[~bad].T, s=12, color="#0a6c89", label="clean")
    ax.scatter(*at[bad].T, s=25, color="#b3470f", marker="x", label="with the artefact")
    ax.set(title=name, xlabel="first component", ylabel="second component")
axes[1].legend()
print(f"weight of spoilt rows: {robust.weights_[bad].mean():.2f}")
print(f"weight of the others: {robust.weights_[~bad].mean():.2f}")

# sphinx_gallery_start_ignore
assert abs(robust.components_[0] @ reference.components_[0]) > 0.99
assert abs(ordinary.components_[0] @ reference.components_[0]) < 0.5
# sphinx_gallery_end_ignore
