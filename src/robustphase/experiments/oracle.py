"""The yardstick: least squares started at the truth and told which samples are clean.

No method can be expected to do better on Gaussian noise. With heavy tails some do, because they also weigh down clean samples
with large noise; their ratio is then below one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustphase import simulate

#: Most Gauss-Newton steps, and the relative step at which they stop.
STEPS, SETTLED = 30, 1e-10


def oracle_signal(world: simulate.World, *, noise_mean_known: bool) -> NDArray[Any]:
    """Least squares on the clean samples of a real world, by Gauss-Newton steps from the truth.

    Parameters
    ----------
    world : World
        With the truth and the touched samples.
    noise_mean_known : bool
        Whether the noise is known to have mean zero; otherwise a background is fitted as well.

    Returns
    -------
    ndarray of shape (n,)
    """
    A, y, x = world.A[world.clean], world.y[world.clean], world.truth
    background = 0.0 if noise_mean_known else world.noise_mean
    for _ in range(STEPS):
        projections = A @ x
        design = 2.0 * projections[:, None] * A
        if not noise_mean_known:
            design = np.hstack((design, np.ones((y.size, 1))))
        # Normal equations: the design is well conditioned, and this is the cost of every world.
        step = np.linalg.solve(design.T @ design, design.T @ (y - projections**2 - background))
        x = x + step[: x.size]
        if not noise_mean_known:
            background += float(step[-1])
        if np.linalg.norm(step) <= SETTLED * np.linalg.norm(x):
            break
    return x
