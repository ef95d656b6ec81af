"""
Learning from workers of whom some lie
======================================

Twenty workers send gradients of a model; four of them have agreed to send something
else, small enough that no coordinate looks odd. ``aggregate`` takes the place of the
mean: deviations of honest gradients are nearly orthogonal to each other, those of a
group are not.
"""

import matplotlib.pyplot as plt
import numpy as np

import robustphase as rp

rng = np.random.default_rng(0)
workers, liars, d = 20, 4, 2000
truth = rng.standard_normal(d)


def gradients(weights):
    """What the workers send; the liars push in one direction."""
    honest = weights - truth + rng.standard_normal((workers, d))
    honest[:liars] = honest[liars:].mean(axis=0) - 1.5  # at every step the same way
    return honest


def learn(combine, steps=40, rate=0.3):
    """Errors along gradient descent with a rule to combine what the workers send."""
    weights, errors = np.zeros(d), []
    for _ in range(steps):
        weights = weights - rate * combine(gradients(weights))
        errors.append(np.linalg.norm(weights - truth) / np.sqrt(d))
    return errors


# %%
# Gradient descent with each rule, beside the mean of the honest workers only.
rules = {
    "mean": lambda updates: updates.mean(axis=0),
    "coordinate median": lambda updates: np.median(updates, axis=0),
    "rp.aggregate": lambda updates: rp.aggregate(
        updates, contamination=liars / workers
    ),
    "mean of the honest": lambda updates: updates[liars:].mean(axis=0),
}
errors = {name: learn(rule) for name, rule in rules.items()}
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, values), style in zip(
    errors.items(), ("C7-", "C1-", "C0-", "k--"), strict=True
):
    ax.semilogy(values, style, label=name)
ax.set(xlabel="step", ylabel="error per coordinate")
ax.legend()
for name, values in errors.items():
    print(f"{name}: {values[-1]:.3f}")

# sphinx_gallery_start_ignore
assert (
    errors["rp.aggregate"][-1]
    < 1.2 * errors["mean of the honest"][-1]
    < 0.5 * errors["mean"][-1]
)
# sphinx_gallery_end_ignore
