"""What the algorithms would see with infinitely many clean samples: closed forms, nothing estimated.

Every statement of the paper about phase retrieval itself, as opposed to robust estimation, is a polynomial moment of
a Gaussian vector. This room holds those moments and what follows from them, and imports nothing from the rest of the
library:

- ``model`` and ``complex_model``: risk, gradient and Hessian for a zero and for an unknown noise mean;
- ``real_rows``: complex signals behind real rows, which are pairs of real ones;
- ``curvature``: exact strong convexity and smoothness, at a point and over a ball around the truth;
- ``steps``: the paper's steps, the corrected ones, the population-Newton step, and the descent they produce;
- ``reach``: how far the truth can be, given the displacement that the risk asks for;
- ``moments`` and ``kurtosis``: means and covariances of everything the algorithms average;
- ``distance``: the distance up to global sign or phase.

Where the paper's formula is wrong, the code has the right one and the docstring says so; docs/errata.md lists all
such places.
"""

from robustphase.population import (
    complex_model,
    curvature,
    kurtosis,
    model,
    moments,
    real_rows,
    steps,
)
from robustphase.population._vectors import NoiseMean
from robustphase.population.curvature import CurvatureRange, convexity_radius, curvature_at, curvature_range
from robustphase.population.distance import distance
from robustphase.population.kurtosis import kappa_4, kappa_4_bound, paired_kappa_4
from robustphase.population.model import gradient, hessian, minimiser, risk
from robustphase.population.moments import CovarianceBounds
from robustphase.population.reach import reach
from robustphase.population.real_rows import PairedSignal
from robustphase.population.steps import (
    PAPER_STEPS,
    STEPS_AS_PUBLISHED,
    best_local_step,
    contraction,
    descent_path,
    guaranteed_step,
    inverse_curvature,
    newton_step,
    paper_contraction,
    paper_step,
    solution_curvature,
    step_as_published,
)

__all__ = [
    "PAPER_STEPS",
    "STEPS_AS_PUBLISHED",
    "CovarianceBounds",
    "CurvatureRange",
    "NoiseMean",
    "PairedSignal",
    "best_local_step",
    "complex_model",
    "contraction",
    "convexity_radius",
    "curvature",
    "curvature_at",
    "curvature_range",
    "descent_path",
    "distance",
    "gradient",
    "guaranteed_step",
    "hessian",
    "inverse_curvature",
    "kappa_4",
    "kappa_4_bound",
    "kurtosis",
    "minimiser",
    "model",
    "moments",
    "newton_step",
    "paired_kappa_4",
    "paper_contraction",
    "paper_step",
    "reach",
    "real_rows",
    "risk",
    "solution_curvature",
    "step_as_published",
    "steps",
]
