"""Experiments: who survives what, the paper's theorems put to the test, and what a measurement will need.

* ``compare`` runs any methods against any adversaries in the same worlds, in parallel, resumable, and tabulates survival,
  accuracy and time.
* ``reproduce`` measures the claims of the paper, one experiment per statement.
* ``plan`` says how many samples a problem needs and what error to expect, before anything is measured.
* ``red_team`` searches for the attack that hurts a given method most; ``unavoidable_error`` says what no method can avoid.

All use the public interface only: whatever they do, a user can do.
"""

from robustphase.experiments.attack_report import FoundAttack, RedTeamResult, RedTeamSettings
from robustphase.experiments.compare import Comparison, ComparisonInterrupted, compare
from robustphase.experiments.information import indistinguishable_distance, total_variation, unavoidable_error
from robustphase.experiments.methods import MethodEstimator
from robustphase.experiments.plan import Plan, PlanWarning, plan
from robustphase.experiments.red_team import RedTeamInterrupted, red_team
from robustphase.experiments.reproduce import reproduce

__all__ = [
    "Comparison",
    "ComparisonInterrupted",
    "FoundAttack",
    "MethodEstimator",
    "Plan",
    "PlanWarning",
    "RedTeamInterrupted",
    "RedTeamResult",
    "RedTeamSettings",
    "compare",
    "indistinguishable_distance",
    "plan",
    "red_team",
    "reproduce",
    "total_variation",
    "unavoidable_error",
]
