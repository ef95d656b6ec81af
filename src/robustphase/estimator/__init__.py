"""The scikit-learn face of the library.

:class:`RobustPhaseRetrieval` checks what it is given (``inputs``), hands it to the recovery engine or to a descent along
robust gradients (``descent``), and keeps the evidence: one record per stage or step (``records``), what to say when the
answer did not settle (``advice``), and standard errors (``standard_errors``).
"""

from robustphase.estimator.estimator import RobustPhaseRetrieval
from robustphase.estimator.records import Iteration

__all__ = ["Iteration", "RobustPhaseRetrieval"]
