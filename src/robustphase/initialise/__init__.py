"""Where the descent starts.

``printed`` holds the paper's Procedures 1 and 3, both configurations. They need n² samples, or an eigenvector of a
heavy-tailed covariance; the rest of this room is the start that survives a constant share of contamination with a number
of samples proportional to n.
"""

from robustphase.initialise.norms import Candidates
from robustphase.initialise.printed import PrintedStart, printed_start
from robustphase.initialise.start import Problem, StartResult, pose, spectral_init, start_candidates

__all__ = [
    "Candidates",
    "PrintedStart",
    "Problem",
    "StartResult",
    "pose",
    "printed_start",
    "spectral_init",
    "start_candidates",
]
