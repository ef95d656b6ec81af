"""Robust means: MeanEstStab of the paper, and the estimators it is compared with.

The paper's guarantees rest on one black box: an estimator of the mean of points in Rⁿ, a fraction ε of which is
arbitrary, that is wrong by ``sqrt(tr Σ / N) + sqrt(‖Σ‖ ε)`` up to constants (Proposition 2.1). Two estimators here
have that property: ``filter``, the default, and ``mmw``. The classical ones do not, each for its own reason, and are
here for comparison and for data that is kind to them.

How the parts combine: ``geometric_median`` gives a first centre, ``directions`` says along which directions to look,
``excess`` judges the spread along them and takes points away, ``filter`` repeats that until nothing stands out, and
``reweight`` lets far points count less. ``gram`` runs the filter on the inner products of few, long points, after
``collusion`` has looked for groups among them. ``simultaneous`` is the filter for n clouds that share their passes, ``mmw``
lowers weights instead of taking points, ``classical`` is the rest, ``estimate`` the choice among all of them.

All of them work on a :class:`robustphase.rows.ScaledRows`, a cloud of points that is never made; :func:`robust_mean` is
the public face, for arrays.
"""

from robustphase.means.estimate import METHODS, mean_of, robust_mean
from robustphase.means.result import MeanResult

__all__ = ["METHODS", "MeanResult", "mean_of", "robust_mean"]
