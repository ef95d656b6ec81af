"""The scikit-learn face of the library.

:class:`RobustPhaseRetrieval` checks what it is given (``inputs``), hands it to the recovery engine or to a descent along
robust gradients (``fitting``; ``streaming`` for one batch at a time), and keeps the evidence: one record per stage or step
(``history``), what to say when the answer did not settle (``advice``), and standard errors (``standard_errors``).
:class:`NoiseModel` is the class of its ``noise_model_``, and :class:`CurvedNoise` where the noise depends on the signal.
"""

from robustphase.estimator.estimator import RobustPhaseRetrieval
from robustphase.estimator.history import Iteration
from robustphase.likelihood import NoiseModel
from robustphase.likelihood.laws import CurvedNoise

__all__ = ["CurvedNoise", "Iteration", "NoiseModel", "RobustPhaseRetrieval"]
