r"""A second ball around an answer, from what its own likelihood makes of the samples instead of from squared residuals.

A fit by a law p of the noise weighs a residual r by the influence :math:`\psi(r) = -(\log p)'(r)`, which is bounded. Squared loss
knows no bound: under noise with heavy tails its gradients vary many times as much as the error of the answer does, and so does
a ball that is made of them. The *pseudo-responses*

.. math:: \tilde y_j = |a_j^H x|^2 + \psi(r_j)/\kappa, \qquad \kappa = \mathbb{E}\,\psi'(z),

have the influences as their residuals, in such units that the curvature of the risk is that of squared loss. So what
`recover.certificate` does with responses bounds the error once more.

**Why it holds the signal.** Let the answer be δ away from the signal. The kept samples are clean, or bad and hidden. At the
signal the influences ``ψ(z) s a`` of all clean samples have a mean that is a matter of chance, ``sqrt(d λ/m)`` long: z does not
depend on a, so this needs a location of the noise, which was fitted, and no law. All clean samples are kept but those that were
rewritten and those that were flagged, a share ``ε + f``, which has taken one tail away at most. From the signal to the answer
the influences of the clean ones change by ``κ H δ``. What hidden samples add is seen among the kept ones, and no more than the
tail of their share. So, in displacements ``H⁻¹ψ s a/κ``,

    ``|δ| ≤ offset + tail(ε + f) + tail(h) + chance``,

the offset being the mean over the kept samples at the answer. H has its population form, of which rows cannot lie. With few
samples the curvature in some direction is smaller, by `left_by_few`, which divides. κ is the mean of ψ' over the kept samples
less what hidden ones can have added to it. `population.reach` then says how far the signal can be.

This is about a signal that clean samples hold from all sides, and near by: farther away than the noise is wide a bounded
influence ceases to grow. Who chooses which samples to rewrite can take away just those that hold the signal. How far that leads,
and what is ruled out far away, is told by the law of all samples and not by a gradient: by the distance of signals that are
``ε + f + h`` apart in total variation (`recover.indistinguishable`), to which the offset and the chance of a finite number of
samples come. Where the law does not fit, influences vary more than it says, and this distance, which is proportional to the width
of the noise, is as much larger. The ball has the larger radius of the two.

Of the flagged samples a share f is clean, by their own weights; the others are bad, and the share ``h = ε + f − flagged`` is left
that may hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustphase.constants import TINY, numeric
from robustphase.likelihood.noise_model import NoiseModel
from robustphase.problem import kept
from robustphase.rows.source import Array


@dataclass(frozen=True)
class InfluenceOptions:
    """Constants of the ball from the influence of the fitted law."""

    least_curvature: float = numeric(
        1e-6, "least mean slope of the influence, over that of the law: below, nothing is bounded"
    )


INFLUENCE = InfluenceOptions()


class Shares(NamedTuple):
    """Shares of the samples, each of shape (k,).

    Attributes
    ----------
    lost : ndarray
        Clean samples that may be missing among the kept ones, ε + f.
    hidden : ndarray
        Bad samples that may be among them, h.
    """

    lost: Array
    hidden: Array


def lost_and_hidden(levels: Array, weights: Array) -> Shares:
    """What a contamination leaves of doubt after samples were flagged.

    Parameters
    ----------
    levels : ndarray of shape (k,)
        The contamination that is allowed for.
    weights : ndarray of shape (m, k)
        Probabilities of the samples to be clean, as a likelihood fit has them.
    """
    flagged = ~kept(weights)
    clean = np.where(flagged, weights, 0.0).mean(axis=0)
    return Shares(levels + clean, np.maximum(levels + clean - flagged.mean(axis=0), 0.0))


def pseudo_responses(responses: Array, predictions: Array, keep: Array, noise: NoiseModel, hidden: Array) -> Array:
    """Responses whose residuals are the influences of the law over their curvature; zero for samples that are not kept.

    Parameters
    ----------
    responses, predictions : ndarray of shape (m, k)
        Responses without their location, and ``|A x|²``.
    keep : ndarray of bool, shape (m, k)
        Which samples are kept.
    noise : NoiseModel
        Laws of the noise.
    hidden : ndarray of shape (k,)
        Share of all samples that may be bad and kept.
    """
    residuals = np.zeros(keep.shape)
    np.subtract(responses, predictions, out=residuals, where=keep)
    influences, slopes = noise.influences(residuals)
    count = np.maximum(keep.sum(axis=0), 1)
    among = np.minimum(hidden * len(keep) / count, 1.0)
    # Hidden samples may have the steepest slope there is: that of a residual of zero on the narrower side.
    held = np.where(keep, slopes, 0.0).sum(axis=0) / count - among * noise.steepest
    least = INFLUENCE.least_curvature / np.maximum(noise.efficient_scales, TINY) ** 2
    curvatures = np.maximum(held / np.maximum(1 - among, TINY), least)
    return np.where(keep, predictions + influences / curvatures, 0.0)
