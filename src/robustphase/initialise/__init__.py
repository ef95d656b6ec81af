"""Where the descent starts.

``procedures`` holds the paper's Procedures 1 and 3, both configurations. They need n² samples, or an eigenvector of a
heavy-tailed covariance; the rest of this room is the start that survives a constant share of contamination with a number of
samples proportional to n: rows are held against their known distribution (``screening``), directions sought in the second
moments of rank bins (``block_davidson``, ``rank_spectra``), and ``start`` chooses norms by likelihood and puts it
together.
"""

from robustphase.initialise.procedures import PublishedStart, published_start
from robustphase.initialise.start import StartResult, spectral_init

__all__ = ["PublishedStart", "StartResult", "published_start", "spectral_init"]
