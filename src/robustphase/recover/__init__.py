"""The default engine: candidates chosen, the winners fitted by maximum likelihood, the answers certified.

In order: screened covariates and candidates (``initialise``), successive halving among them and a vote of the finalists
(``selection``), a fit with the noise model and a check that residuals do not depend on predictions (``descend``), and a
certificate by the robust gradient (``certificate``). ``engine`` runs it, for one signal or many, and returns a ``recovery``.
"""

from robustphase.recover.engine import Known, recover
from robustphase.recover.recovery import Recovery

__all__ = ["Known", "Recovery", "recover"]
