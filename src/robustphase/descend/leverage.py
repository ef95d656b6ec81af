"""How much of a residual a fit has taken from a sample by following it.

Signals about as likely as the estimate predict a response with a variance of ``σ² h``, the h of a sample its leverage. The
fitted residual is too small by as much: over all samples the leverages add up to the number of unknowns. A law that is fitted
to residuals as they are finds the noise too small and its tails too heavy, trusts the samples it follows most, and follows
them even more. So a squared residual r² counts as ``r² + σ² h``, its mean over these signals.

With population moments of the covariates, ``h = p |s|² / Σ w |s|²``, with p real unknowns and the weights w of iterated least
squares, which have the mean one under the law itself.
"""

from __future__ import annotations

import numpy as np

from robustphase.descend.objective import real_unknowns
from robustphase.likelihood import NoiseLaw
from robustphase.rows.data import Data, as_columns
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array

#: Largest mean leverage: with fewer than two samples for each unknown nothing is left to tell noise from signal.
MOST = 0.5
#: A mass is never smaller: it vanishes where all samples were screened out.
LEAST_MASS = 1e-100
_TINY = float(np.finfo(np.float64).tiny)


def leverage_rates(data: Data, signals: Array, law: NoiseLaw) -> Array:
    """What the energy ``|s|²`` of a sample is to be multiplied with for its leverage, shape (k,)."""
    mass = np.maximum(as_columns(data.weights).sum(axis=0) * (1 - law.shares), LEAST_MASS)
    rates: Array = np.minimum(real_unknowns(signals) / mass, MOST) / np.maximum(abs2(signals).sum(axis=0), _TINY)
    return rates
