"""How well a signal explains the data, when part of the data is not to be explained.

A clean residual has a heavy-tailed density at a scale of its own; a bad response is anything, and *anything* is modelled by a
density of responses, whatever the covariates. So a sample counts for a signal only as far as its response is surprising: values
that a large part of the data shares (erased responses, all zero) prove nothing, and no sample can count without bound.

``bad_responses`` estimates that density, for all samples or class by class; ``comparison`` scores candidates with one fixed noise
law, cheaply; ``noise_model`` is the law that is fitted along with the signal in the end, as an e-step and an m-step; ``laws``
says what laws of readings have in common whose noise depends on the signal, and what is reported of them; ``dependent_noise``
holds the two such laws; ``shared_evidence`` judges groups of samples that are good or bad together.
"""

from robustphase.likelihood.bad_responses import bad_density, response_density
from robustphase.likelihood.comparison import compare, residual_scales, score
from robustphase.likelihood.noise_model import NoiseModel, classify, e_step, initial_model, m_step
from robustphase.likelihood.shared_evidence import GroupEvidence, group_evidence, row_likelihoods

__all__ = [
    "GroupEvidence",
    "NoiseModel",
    "bad_density",
    "classify",
    "compare",
    "e_step",
    "group_evidence",
    "initial_model",
    "m_step",
    "residual_scales",
    "response_density",
    "row_likelihoods",
    "score",
]
