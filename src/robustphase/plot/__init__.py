"""Plots of a fit, on matplotlib (``pip install 'robustphase[plot]'``).

Every function takes a fitted estimator (and the data, where it shows samples) or the diagnostics that a result file holds, draws
into ``ax`` or a new figure, and returns the axes: label, scale and save them as any others. A kind of thing has the same colour
and the same mark in all of them.
"""

from robustphase.plot.course import candidates, certificate, groups, history, model_check
from robustphase.plot.detector import flags, noise, predictions, residuals, variance, weights
from robustphase.plot.many import distribution, rows
from robustphase.plot.signals import signal

__all__ = [
    "candidates",
    "certificate",
    "distribution",
    "flags",
    "groups",
    "history",
    "model_check",
    "noise",
    "predictions",
    "residuals",
    "rows",
    "signal",
    "variance",
    "weights",
]
