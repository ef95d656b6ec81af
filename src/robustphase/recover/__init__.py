"""The default engine: candidates raced, the winner polished, the answer certified.

In order: screened covariates and candidates (``initialise``), a race in which all candidates move together and the losers
drop out, a few Gauss-Newton steps for the finalists and the choice among them, a polish with the noise law fitted, a check
that residuals do not depend on predictions, and a certificate by the robust gradient. ``engine`` runs it.
"""

from robustphase.recover.engine import Recovery, recover

__all__ = ["Recovery", "recover"]
