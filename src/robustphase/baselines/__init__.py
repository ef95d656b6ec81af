"""Methods of the literature, to compare with: same signature, same result.

Non-robust ones show what contamination does; robust ones show what was possible before. Four ideas, and the methods that
try them:

* leave out samples with large residuals, measured by the mean (:func:`truncated_wirtinger_flow`) or the median
  (:func:`median_truncated_wirtinger_flow`, :func:`median_reshaped_wirtinger_flow`);
* a loss that grows slowly: absolute values (:func:`prox_linear`, :func:`polyak_subgradient`,
  :func:`geometric_subgradient`, :func:`smoothed_l1`) or logarithms (:func:`cauchy_least_squares`);
* the likelihood of counts (:func:`poisson_wirtinger_flow`, and :func:`truncated_wirtinger_flow` again);
* neither, but fewer samples: amplitudes (:func:`truncated_amplitude_flow`, :func:`reweighted_amplitude_flow`).

All of them are ``method(A, y, *, max_iter=..., tol=..., start=None, random_state=None, nonfinite="raise", field="auto") ->
BaselineResult``, some with further keywords. They keep the constants of their papers, which are named above each of them.
``starts`` holds the spectral starts, ``problem`` the checks, the units, and the loop that most share. :data:`METHODS` maps
names to functions.
"""

from collections.abc import Callable

from robustphase.baselines.absolute_loss import geometric_subgradient, polyak_subgradient, prox_linear
from robustphase.baselines.flows import (
    median_reshaped_wirtinger_flow,
    median_truncated_wirtinger_flow,
    poisson_wirtinger_flow,
    reweighted_amplitude_flow,
    truncated_amplitude_flow,
    truncated_wirtinger_flow,
    wirtinger_flow,
)
from robustphase.baselines.m_estimates import cauchy_least_squares, smoothed_l1
from robustphase.baselines.problem import BaselineResult

#: All baselines by name, the plain one first.
METHODS: dict[str, Callable[..., BaselineResult]] = {
    method.__name__: method
    for method in (
        wirtinger_flow,
        poisson_wirtinger_flow,
        truncated_wirtinger_flow,
        median_truncated_wirtinger_flow,
        median_reshaped_wirtinger_flow,
        truncated_amplitude_flow,
        reweighted_amplitude_flow,
        prox_linear,
        polyak_subgradient,
        geometric_subgradient,
        smoothed_l1,
        cauchy_least_squares,
    )
}

__all__ = [
    "METHODS",
    "BaselineResult",
    "cauchy_least_squares",
    "geometric_subgradient",
    "median_reshaped_wirtinger_flow",
    "median_truncated_wirtinger_flow",
    "poisson_wirtinger_flow",
    "polyak_subgradient",
    "prox_linear",
    "reweighted_amplitude_flow",
    "smoothed_l1",
    "truncated_amplitude_flow",
    "truncated_wirtinger_flow",
    "wirtinger_flow",
]
