"""Methods of the literature, to compare with: same signature, same result.

Non-robust ones show what contamination does; robust ones show what was possible before.
"""

from robustphase.baselines.result import BaselineResult
from robustphase.baselines.wirtinger import wirtinger_flow

__all__ = ["BaselineResult", "wirtinger_flow"]
