"""Population descent: what Algorithms 2 and 4 do with infinitely many clean samples.

No sampling, no contamination: what goes wrong here goes wrong everywhere. The picture for choosing steps, and the
proof by example that the printed step of Algorithm 4 does not converge (docs/errata.md, entry A3).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from robustphase.population._vectors import NoiseMean
from robustphase.population.model import gradient
from robustphase.population.steps import newton_step


def descent_path(
    start: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    step: float | None = None,
    n_steps: int = 50,
    noise_mean: NoiseMean = "zero",
    max_relative_length: float | None = 0.4,
) -> npt.NDArray[Any]:
    """Iterates ``x₀, …, x_T`` of gradient descent on the population risk.

    Parameters
    ----------
    start, truth : array_like of shape (n,)
        The initial point ``x₀`` and the true signal ``x*``, real or complex.
    step : float, optional
        Constant step ``η``. Default: population-Newton steps.
    n_steps : int, default 50
        Number of iterations ``T``.
    noise_mean : {"zero", "unknown"}, default "zero"
        Which of the paper's two models.
    max_relative_length : float, optional
        Limit on the length of a Newton step over ``‖x‖``; ignored with a constant step.

    Returns
    -------
    ndarray of shape (n_steps + 1, n)
    """
    first, target = np.asarray(start), np.asarray(truth)
    dtype = np.complex128 if np.iscomplexobj(first) or np.iscomplexobj(target) else np.float64
    path = np.empty((n_steps + 1, first.size), dtype=dtype)
    path[0] = first
    for t in range(n_steps):
        slope = gradient(path[t], target, noise_mean=noise_mean)
        if step is None:
            path[t + 1] = path[t] - newton_step(
                path[t], slope, noise_mean=noise_mean, max_relative_length=max_relative_length
            )
        else:
            path[t + 1] = path[t] - step * slope
    return path
