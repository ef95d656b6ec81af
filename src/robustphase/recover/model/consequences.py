"""What follows from a check for certificates and standard errors, and what noise alone leaves of error."""

from __future__ import annotations

import math

import numpy as np

from robustphase.constants import TINY
from robustphase.recover.model.design import Design
from robustphase.recover.model.figures import Figures
from robustphase.recover.model.limits import CHECKS, largest_shift, scale_ratio_by_chance
from robustphase.recover.model.verdict import ABOUT_RESIDUALS, ModelCheck


def certificate_factor(check: ModelCheck, design: Design | None, figures: Figures) -> float:
    """By how much a certificate that counts on a standard normal design is too small for the design there is; at least 1.

    It divides by the least curvature of the risk, and the risk may be less curved: rows of length τ give ``τ⁴`` of it, and where
    large predictions are flagged, the samples that hold the length of the signal are gone.
    """
    failed = {one.name for one in check.failed}
    # One remark on the residuals is an imperfection; two of them are another law, of which the certificate knows nothing.
    if check.severe or "power of the responses" in failed or len(failed & set(ABOUT_RESIDUALS)) > 1:
        return np.inf
    if design is None:
        return 1.0
    least = 1.0
    if "scale of the rows" in failed:
        least = min(least, design.scale**2)
    if math.isnan(design.curvature):
        if failed & {"mean of the rows", "covariance of the rows"}:
            return np.inf
    elif "curvature" in failed or _large_ones_gone(figures):
        least = min(least, design.curvature)
    return 1.0 / least if least > 0 else np.inf


def _large_ones_gone(figures: Figures) -> bool:
    """Whether clearly more of the upper third of the predictions are flagged than of the lower one."""
    spread = figures.missing * (1 - figures.missing) * 6 / max(figures.checked, 1)
    return figures.missing_high - figures.missing_low > CHECKS.turn_hint * math.sqrt(max(spread, 0.0))


def doubts(check: ModelCheck) -> str:
    """The name of a check whose failure makes standard errors wrong, or nothing: a bias is no matter of noise."""
    for one in check.failed:
        if one.severe or one.name == "power of the responses":
            return f'"{one.name}"'
    return ""


def sampling_error(figures: Figures, design: Design | None, is_complex: bool) -> float:
    """Relative standard error of the signal from noise alone, with what few samples add.

    Of two estimates of the noise the larger one counts, unless its law is clearly skewed.
    """
    left = _left_by_few(figures, is_complex)
    noise = figures.law if math.isnan(figures.efficient) and _clearly_skewed(figures) else _larger_noise(figures)
    return _noise_error(figures, noise, design, is_complex) / left if left > 0 else np.inf


def _left_by_few(figures: Figures, is_complex: bool) -> float:
    return left_by_few(figures.unknowns, figures.kept, is_complex)


def left_by_few(unknowns: int, samples: int, is_complex: bool) -> float:
    """One over the factor by which few samples make errors larger, for so many real unknowns.

    It grows without bound towards the number of samples below which the signal is not determined.
    """
    least = CHECKS.few_complex / 2 if is_complex else CHECKS.few_real
    return 1 - math.sqrt(min(least * unknowns / max(samples, 1), 1.0))


def error_as_given(figures: Figures, design: Design | None, is_complex: bool) -> float:
    """The same behind the rows as they were given, and for the two parts of a complex signal behind real ones.

    A certificate counts on the larger of two estimates of the noise; where it is asked whether the noise is too large, that would
    be a bias, and the noise that the gradient meets is taken. Rows that are not centred are no such rows as all this is about,
    and there the larger one is taken still.
    """
    n = figures.unknowns // (2 if is_complex else 1)
    centred = design is None or design.shift <= largest_shift(n, design.rows)
    noise = _met_noise(figures) if centred else _larger_noise(figures)
    error, left = _noise_error(figures, noise, design, is_complex), _left_by_few(figures, is_complex)
    # A part of no length is seen by its square alone, and so known to the root of what is left of it.
    parts = min(figures.balance * error, max(error, CHECKS.by_squares * math.sqrt(error)))
    return figures.stretch * max(error / left, parts) if left > 0 else np.inf


def _met_noise(figures: Figures) -> float:
    """Standard deviation of the noise as the fit meets it: that of its law where the law is clearly skewed.

    A fit that knows on which side of zero the noise is narrow makes smaller errors than the width of the noise tells. Only noise
    that does not grow with the signal has one law; residuals of a wrong model mostly grow, and are skewed too.
    """
    if not math.isnan(figures.efficient):
        return figures.efficient
    return figures.law if _clearly_skewed(figures) else _plain_noise(figures)


def _larger_noise(figures: Figures) -> float:
    """Standard deviation of the noise, by the larger of its estimates where it does not depend on the signal.

    Noise that grows with the signal is met where the gradient weighs it most.
    """
    return max(figures.scale, figures.noise) if math.isnan(figures.efficient) else figures.efficient


def _plain_noise(figures: Figures) -> float:
    return figures.noise if figures.noise > 0 else figures.scale


def _clearly_skewed(figures: Figures) -> bool:
    """Whether noise that does not grow with the signal is clearly skewed, so that its law leaves more than its width tells."""
    clear = CHECKS.deviations * CHECKS.skew_error / math.sqrt(max(figures.kept, 1))
    skewed = figures.law < _plain_noise(figures) and abs(math.log(figures.skew)) > clear
    even = max(figures.growth, figures.uneven) < scale_ratio_by_chance(figures.checked, 1.0)
    return skewed and even


def _noise_error(figures: Figures, noise: float, design: Design | None, is_complex: bool) -> float:
    """Relative standard error of the signal from noise of this standard deviation alone, behind standardised rows."""
    share = figures.unknowns / max(figures.kept, 1)
    if share >= 1:
        return np.inf
    energy = figures.energy * (1.0 if design is None else design.scale)
    if design is not None and design.curvature < CHECKS.curvature:
        # The direction that is known least decides.
        energy *= math.sqrt(max(design.curvature, 0.0)) / max(design.scale, TINY)
    relative = noise / max(energy, 1e-200) / math.sqrt(1 - share)
    return 0.5 * float(relative) * math.sqrt((2 if is_complex else 1) * share)
