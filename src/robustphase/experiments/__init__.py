"""Experiments: who survives what, the paper's theorems put to the test, and what a measurement will need.

* ``compare`` runs any methods against any adversaries in the same worlds, in parallel, resumable, and tabulates survival,
  accuracy and time.
* ``reproduce`` measures the claims of the paper, one experiment per statement.
* ``plan`` says how many samples a problem needs and what error to expect, before anything is measured.
* ``unavoidable_error`` says what error an adversary forces on every method.

All use the public interface only: whatever they do, a user can do.
"""

from robustphase.experiments.compare import ComparisonInterrupted, compare
from robustphase.experiments.comparison import Comparison
from robustphase.experiments.information import indistinguishable_distance, total_variation, unavoidable_error
from robustphase.experiments.plan import Plan, PlanWarning, plan
from robustphase.experiments.reproduce import reproduce

__all__ = [
    "Comparison",
    "ComparisonInterrupted",
    "Plan",
    "PlanWarning",
    "compare",
    "indistinguishable_distance",
    "plan",
    "reproduce",
    "total_variation",
    "unavoidable_error",
]
