"""Does the model hold? The test of its own assumptions that every fit ends with.

Three ideas, in the order of the flow. *Samples*: a part of the rows, taken into memory and split at random into halves
(``samples``). *Figures*: what is measured on them, each figure in a module of its own: the design (``design``,
``determinacy``), predictions that the fit has not seen (``held_out``), statistics of the residuals (``residuals``, ``power``),
directions on which they still depend and changes along the rows (``directions``), another signal behind the flagged samples
(``rival_signal``); ``figures`` gathers them. *Checks*: each holds one figure against its limit (``limits``) and names a cause
and a remedy (``sample_checks``, ``residual_checks``); ``check`` makes the verdict of them, and ``consequences`` says what it
means for certificates and standard errors.
"""

from robustphase.recover.model.check import check_model
from robustphase.recover.model.consequences import certificate_factor, doubts, left_by_few, sampling_error
from robustphase.recover.model.design import Design
from robustphase.recover.model.figures import Figures, measure
from robustphase.recover.model.limits import CHECKS
from robustphase.recover.model.samples import FittedSamples, checked_rows
from robustphase.recover.model.verdict import Check, ModelCheck, ModelWarning, Told

__all__ = [
    "CHECKS",
    "Check",
    "Design",
    "Figures",
    "FittedSamples",
    "ModelCheck",
    "ModelWarning",
    "Told",
    "certificate_factor",
    "check_model",
    "checked_rows",
    "doubts",
    "left_by_few",
    "measure",
    "sampling_error",
]
