"""How well a signal explains the data, when part of the data is not to be explained.

A clean residual has a heavy-tailed density at a scale of its own; a bad response is anything, and *anything* is modelled by
the marginal density of all responses. The score of a signal is the mean log ratio of the mixture to that density. So a
sample counts for a signal only as far as its response is surprising: values that a large part of the data shares (erased
responses, all zero) prove nothing, and no sample can count without bound.

``responses`` estimates the marginal density, ``mixture`` scores residuals and gives the weights of the iterated least
squares, ``noise`` fits the law of clean residuals for the last, efficient step.
"""

from robustphase.likelihood.mixture import mixture_weights, residual_scales, score
from robustphase.likelihood.noise import NoiseLaw, cautious_law, count_bad
from robustphase.likelihood.responses import density_floor, response_density

__all__ = [
    "NoiseLaw",
    "cautious_law",
    "count_bad",
    "density_floor",
    "mixture_weights",
    "residual_scales",
    "response_density",
    "score",
]
