"""Does the model hold? Every fit ends with a test of what it took for granted.

A fit answers whatever it is given: the best signal under ``y = |a·x|² + noise`` for a standard normal design. Each check holds
one figure of the fit (:mod:`robustphase.recover.model_figures`) against what that model allows at this number of samples and
unknowns. A check that fails names the likely cause and the next thing to try. It is *severe* if the answer itself can no longer
be believed; then the fit has not converged and nothing is certified. Thresholds that rest on chance are set for one false alarm
in ten thousand fits each, a nominal rate that has not been measured; the shares beside them say how large an effect must be to
matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from robustphase.constants import derived, empirical, numeric
from robustphase.recover.model_figures import Design, Figures


@dataclass(frozen=True)
class CheckOptions:
    """Constants of the checks."""

    deviations: float = derived(4.5, "standard deviations that chance exceeds in less than one fit of 10⁵")
    evidence: float = derived(20.0, "gain in squared deviations that one more parameter exceeds in one fit of 10⁵")
    hint: float = derived(12.0, "the same exceeded in one fit of 2000: then nothing is certified")
    exact: float = numeric(
        1e-12, "unexplained share of the variance below which residuals are roundings, and say nothing"
    )
    flagged_more: float = empirical(0.07, "share of flagged samples above the stated level that heavy tails explain")
    flagged_share: float = empirical(
        0.2, "and this part of the stated level: bad samples take clean neighbours with them"
    )
    flagged_few: float = empirical(0.8, "and this for every unknown per sample")
    flagged_auto: float = empirical(0.39, "share of flagged samples beyond which a found level is not believed")
    correlation: float = empirical(0.05, "rank correlation with held-out predictions below which nothing is explained")
    capacity: float = empirical(2.5, "what a fit explains of unrelated responses, for every unknown per sample")
    most_capacity: float = empirical(0.45, "and at most")
    selection: float = empirical(1.5, "what flagging a share of the samples adds to the correlation of the others")
    few_real: float = derived(2.0, "samples per unknown below which real signals are not unique (2n − 1)")
    few_complex: float = derived(
        3.0, "samples per complex unknown: below, no method finds the signal even without noise"
    )
    noisy: float = empirical(0.3, "expected relative error from noise alone beyond which the answer is no answer")
    low_power: float = empirical(0.85, "exponents below it are not rounding: magnitudes have 0.5, logarithms less")
    high_power: float = empirical(1.3, "exponents above it: squared responses have 2")
    near_power: float = empirical(0.08, "logarithm of an exponent that no certificate covers")
    dependence: float = empirical(
        0.02, "share of the residuals' variance explained by one direction that harms the answer"
    )
    background: float = empirical(
        0.35, "mean residual over the energy of the signal that is no accident of skewed noise"
    )
    background_noise: float = empirical(0.4, "and over the scale of the noise")
    background_unexplained: float = empirical(
        0.3, "unexplained share of the variance with which it is more than a constant"
    )
    rival: float = empirical(0.03, "share of the samples that a rival may explain above the stated contamination")
    rival_share: float = empirical(0.1, "and this part of the stated level")
    rival_auto: float = derived(
        0.35, "of the samples that tell both apart, where no level was stated: the most that is assumed"
    )
    rival_least: float = derived(0.2, "and of all samples: the level that is assumed at first")
    turn: float = empirical(
        0.1, "difference of the signals behind either half of the rows, over the norm, that matters"
    )
    uneven: float = empirical(2.0, "ratio of noise between large and small predictions that costs accuracy")
    rough: float = empirical(
        0.5, "scale of the noise over the responses themselves, where both are large, that is too much"
    )
    trend: float = empirical(0.1, "correlation along the rows that is worth a look")
    strong_trend: float = empirical(0.3, "and one that spoils the answer: a tenth of the variance of the residuals")
    scale: float = empirical(
        0.1, "relative deviation of the mean square of an entry from one that matters to the certificate"
    )
    shift: float = empirical(
        0.02, "squared length of the mean row, relative to that of a row, that matters to the certificate"
    )
    spread: float = empirical(
        0.05, "relative variance of the eigenvalues of the rows' covariance that matters to the certificate"
    )
    wide: float = empirical(1.2, "the same beyond which also the answer suffers: a condition number of about a hundred")
    curvature: float = empirical(0.4, "least curvature over that of the assumed design that chance does not fall below")
    flat: float = empirical(0.05, "least curvature below which other signals fit as well")
    sampling: float = empirical(2.0, "standard errors of the signal that a certificate covers at least")


CHECKS = CheckOptions()
#: Checks of the design.
ABOUT_ROWS = ("scale of the rows", "mean of the rows", "covariance of the rows")
#: Checks that take an answer for the best there is.
ABOUT_RESIDUALS = (
    "power of the responses",
    "residuals along the rows",
    "expected error",
    "background",
    "evenness of the noise",
    "neighbouring residuals",
    "drift of the background",
    "drift of the gain",
    "drift of the signal",
)


class ModelWarning(ConvergenceWarning):  # type: ignore[misc]
    """The data contradict the model of the fit, so its answer is in doubt."""


@dataclass(frozen=True)
class Check:
    """One check of the model.

    Attributes
    ----------
    name : str
        What was checked.
    figure, threshold : float
        What was measured, and the value it must not pass.
    failed, severe : bool
        Whether it did, and whether the answer is in doubt for it.
    cause, remedy : str
        The likely cause and the next thing to try, if it did.
    """

    name: str
    figure: float
    threshold: float
    failed: bool
    severe: bool
    cause: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        verdict = "severe" if self.severe else "look" if self.failed else "ok"
        line = f"{verdict:7s} {self.name:24s} {self.figure:10.3g}  (limit {self.threshold:.3g})"
        return f"{line}\n        {self.cause}. {self.remedy}" if self.failed else line


@dataclass(frozen=True)
class ModelCheck:
    """All checks of one signal; prints as a table."""

    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed, severe ones first."""
        return tuple(sorted((check for check in self.checks if check.failed), key=lambda check: not check.severe))

    @property
    def severe(self) -> bool:
        """Whether the answer is in doubt."""
        return any(check.severe for check in self.checks)

    @property
    def message(self) -> str:
        """The most severe failure, its likely cause and what to try; empty if all is well."""
        if not self.failed:
            return ""
        worst = self.failed[0]
        others = [check.name for check in self.failed[1:]]
        more = f" Also failed: {', '.join(others)}." if others else ""
        said = "the model does not hold" if self.severe else "the model holds only roughly"
        return (
            f"{said}: {worst.name} is {worst.figure:.3g}, limit {worst.threshold:.3g}. Likely cause: {worst.cause}. "
            f"{worst.remedy}{more}"
        )

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))


class Told(NamedTuple):
    """What a fit was told and how it was made.

    Attributes
    ----------
    stated : float or "auto"
        The contamination that was stated.
    whitened : bool
        Whether the rows were whitened before.
    is_complex : bool
        Whether the signal is complex.
    unknown_mean : bool
        Whether a background was fitted.
    rough : bool, default=False
        The answer was not fitted to the end, so its residuals still depend on A; only the checks that allow for this are made.
    """

    stated: float | str
    whitened: bool
    is_complex: bool
    unknown_mean: bool
    rough: bool = False


def check_model(figures: Figures, design: Design | None, told: Told, *, no_signal: bool) -> ModelCheck:
    """Hold the figures of a fit against its model.

    Parameters
    ----------
    figures : Figures
        Of one signal.
    design : Design or None
        Of its rows; None for a linear operator.
    told : Told
        What the fit was told.
    no_signal : bool
        Whether a signal of zero explains the responses.
    """
    found = [
        _signal(figures, no_signal),
        _samples(figures, told.is_complex),
        *(
            ()
            if design is None
            else _design_checks(design, figures.unknowns // (2 if told.is_complex else 1), told.whitened)
        ),
        _power(figures),
        _dependence(figures, told.is_complex),
        _flagged(figures, told.stated),
        _rival(figures, told.stated),
        _explained(figures),
        _noise(figures, design, told.is_complex),
        *(() if told.unknown_mean else (_background(figures),)),
        _uneven(figures),
        *_row_order(figures, ordered=design is not None),
        _turn(figures),
    ]
    if told.rough:
        found = [check for check in found if check.name not in ABOUT_RESIDUALS]
    return ModelCheck(tuple(_blamed(_together(found, ordered=design is not None))))


def _together(checks: list[Check], *, ordered: bool) -> list[Check]:
    """A curve that is slightly off does little harm by itself; with a background, or two other failures, it is another law.

    Failures that rows of an operator explain by themselves do not count: those of neighbours.
    """
    expected = () if ordered else ("neighbouring residuals",)
    others = {check.name for check in checks if check.failed and check.name in ABOUT_RESIDUALS} - set(expected)
    if "power of the responses" not in others or ("background" not in others and len(others) < 3):
        return checks
    return [replace(check, severe=True) if check.name == "power of the responses" else check for check in checks]


def _blamed(checks: list[Check]) -> list[Check]:
    """Where too many samples are flagged and the design is off, the design is to blame: screening takes its rows for bad ones."""
    if not any(check.name == "flagged share" and check.severe for check in checks):
        return checks
    return [replace(check, severe=check.failed) if check.name in ABOUT_ROWS else check for check in checks]


def certificate_factor(check: ModelCheck, design: Design | None) -> float:
    """By how much a certificate that counts on a standard normal design is too small for the design there is; at least 1.

    It divides by the least curvature of the risk, and the risk may be less curved: rows of length τ give ``τ⁴`` of it.
    """
    failed = {one.name for one in check.failed}
    if check.severe or "power of the responses" in failed:
        return np.inf
    if design is None:
        return 1.0
    least = 1.0
    if "scale of the rows" in failed:
        least = min(least, design.scale**2)
    if "curvature" in failed:
        least = min(least, design.curvature)
    elif np.isnan(design.curvature) and failed & {"mean of the rows", "covariance of the rows"}:
        return np.inf
    return 1.0 / least if least > 0 else np.inf


def doubts(check: ModelCheck) -> str:
    """The name of a check whose failure makes standard errors wrong, or nothing: a bias is no matter of noise."""
    for one in check.failed:
        if one.severe or one.name == "power of the responses":
            return f'"{one.name}"'
    return ""


def sampling_error(figures: Figures, design: Design | None, is_complex: bool) -> float:
    """Relative standard error of the signal from noise alone, with what few samples add."""
    share = figures.unknowns / max(figures.kept, 1)
    if share >= 1:
        return np.inf
    energy = figures.energy * (1.0 if design is None else design.scale)
    if design is not None and design.curvature < CHECKS.curvature:
        # The direction that is known least decides.
        energy *= float(np.sqrt(max(design.curvature, 0.0))) / max(design.scale, float(np.finfo(float).tiny))
    # Noise that grows with the signal is met where the gradient weighs it most.
    scale = max(figures.scale, figures.noise) if np.isnan(figures.efficient) else figures.efficient
    noise = scale / max(energy, 1e-200) / np.sqrt(1 - share)
    # It grows without bound towards the number of samples below which the signal is not determined.
    least = CHECKS.few_complex / 2 if is_complex else CHECKS.few_real
    left = 1 - float(np.sqrt(min(least * share, 1.0)))
    if not left > 0:
        return np.inf
    return 0.5 * float(noise) * float(np.sqrt((2 if is_complex else 1) * share)) / left


def _signal(figures: Figures, no_signal: bool) -> Check:
    return Check(
        "signal",
        figures.energy,
        0.0,
        no_signal,
        no_signal,
        "the responses hold no signal at all: they do not depend on A, as those of a dead or covered detector",
        "Check that every response stands beside its own row.",
    )


def _samples(figures: Figures, is_complex: bool) -> Check:
    unknowns = figures.unknowns / (2 if is_complex else 1)
    least = CHECKS.few_complex if is_complex else CHECKS.few_real
    ratio = figures.kept / unknowns
    few = ratio < least
    return Check(
        "samples per unknown",
        ratio,
        least,
        few,
        few,
        f"{figures.kept} samples that fit do not determine {int(unknowns)} unknowns: other signals fit them as well",
        f"Collect at least {int((6 if is_complex else 4) * unknowns)} samples, or check that A is not transposed.",
    )


def _flagged(figures: Figures, stated: float | str) -> Check:
    chance = float(np.sqrt(0.25 / max(figures.samples, 1)))
    if isinstance(stated, str):
        limit = CHECKS.flagged_auto
        remedy = "Check the units of A and y, and that less than a third of the samples are bad."
    else:
        few = CHECKS.flagged_few * figures.unknowns / max(figures.samples, 1)
        margin = CHECKS.flagged_more + CHECKS.flagged_share * stated + few + 1.5 * chance
        limit = min(stated + margin, 0.5)
        remedy = (
            f'Try contamination="auto", or contamination={min(figures.flagged + 0.03, 0.49):.2f}; '
            "whiten=True if the rows of A have another scale or covariance; y**2 if y holds magnitudes."
        )
    too_many = figures.flagged > limit
    return Check(
        "flagged share",
        figures.flagged,
        limit,
        too_many,
        too_many,
        "far more samples disagree with the answer than may be bad",
        remedy,
    )


def _rival(figures: Figures, stated: float | str) -> Check:
    chance = CHECKS.deviations / 2 * float(np.sqrt(0.25 / max(figures.samples, 1)))
    if isinstance(stated, str):
        figure, limit = figures.rival_apart, CHECKS.rival_auto
        there = figure > limit and figures.rival > CHECKS.rival_least
    else:
        figure, limit = figures.rival, (1 + CHECKS.rival_share) * stated + CHECKS.rival + chance
        there = figure > limit
    return Check(
        "rival signal",
        figure,
        limit,
        there,
        there,
        "another signal explains a large part of the samples: rows told wrongly, columns in another order or another gain in a "
        "part of the data, or more bad samples than good ones",
        "Fit the flagged samples by themselves and compare; check that A and the units of y are the same throughout.",
    )


def _explained(figures: Figures) -> Check:
    share = figures.unknowns / max(figures.samples, 1)
    chance = 2.0 / np.sqrt(max(figures.checked, 1))
    limit = CHECKS.correlation + min(CHECKS.capacity * share, CHECKS.most_capacity) + float(chance)
    # Samples are flagged because they are not explained, which flatters the others; the more so, the fewer there are.
    flattered = CHECKS.selection * figures.flagged * min(1.0, 15 * share)
    figure = max(figures.correlation, figures.kept_correlation - flattered)
    return Check(
        "explained responses",
        figure,
        limit,
        figure < limit,
        figure < limit,
        "the responses do not depend on A as the answer says: samples that the fit had not seen are not predicted",
        "Check that every response stands beside its own row (shifted, sorted or shuffled rows), or collect more samples.",
    )


def _noise(figures: Figures, design: Design | None, is_complex: bool) -> Check:
    expected = sampling_error(figures, design, is_complex)
    drowned = not expected <= CHECKS.noisy
    return Check(
        "expected error",
        expected,
        CHECKS.noisy,
        drowned,
        drowned,
        "the noise is too large for so few samples",
        "Collect more samples, or reduce the noise.",
    )


def _background(figures: Figures) -> Check:
    limit = max(
        CHECKS.background * figures.energy,
        CHECKS.background_noise * figures.scale,
        CHECKS.deviations * figures.scale / float(np.sqrt(max(figures.checked, 1))),
    )
    there = abs(figures.background) > limit
    # The location of the residuals is fitted in any case, so a constant alone does no harm.
    return Check(
        "background",
        figures.background,
        limit,
        there,
        there and figures.unexplained > CHECKS.background_unexplained,
        "the responses have a background, or parts that this signal does not explain (other modes, rows not as stated)",
        'Try noise_mean="unknown".',
    )


def _power(figures: Figures) -> Check:
    evidence = figures.power_evidence if figures.unexplained > CHECKS.exact else 0.0
    low, high = figures.power < CHECKS.low_power, figures.power > CHECKS.high_power
    severe = evidence > CHECKS.evidence and (low or high)
    failed = severe or (evidence > CHECKS.hint and abs(np.log(figures.power)) > CHECKS.near_power)
    if figures.power < 0.3:
        cause, remedy = "the responses grow like a logarithm, as decibels do", "Try 10**(y/10) instead of y."
    elif figures.power < 1:
        cause = "the responses grow more slowly than |a·x|²: magnitudes, or a detector that saturates"
        remedy = "Try y**2 if y holds magnitudes; leave out readings at the upper limit if they are clipped."
    else:
        cause, remedy = (
            "the responses grow faster than |a·x|²",
            "Try the square root of y if y holds squared intensities.",
        )
    limit = CHECKS.low_power if figures.power < 1 else CHECKS.high_power
    return Check("power of the responses", figures.power, limit, bool(failed), bool(severe), cause, remedy)


def _dependence(figures: Figures, is_complex: bool) -> Check:
    clear = figures.dependence_evidence > CHECKS.deviations and figures.dependence > CHECKS.dependence
    clear &= figures.unexplained > CHECKS.exact
    cause = "what one signal leaves of the responses still depends on A: a second signal or mode, or rows that are not as stated"
    if not is_complex:
        cause += ", or a complex signal behind real rows"
    return Check(
        "residuals along the rows",
        figures.dependence,
        CHECKS.dependence,
        clear,
        clear,
        cause,
        "Check that A holds the rows that were applied, and that one signal alone was there."
        if is_complex
        else 'If the signal may be complex, no real one explains the data: pass field="complex". Otherwise check that A holds '
        "the rows applied.",
    )


def _uneven(figures: Figures) -> Check:
    ratio = max(figures.uneven, 1 / max(figures.uneven, 1e-9))
    # The logarithm of a robust scale of k normal variables has the standard deviation 1.17/sqrt(2k).
    chance = np.exp(CHECKS.deviations * 1.17 * np.sqrt(3 / max(figures.checked, 1)))
    limit = CHECKS.uneven * float(chance)
    matters = ratio > limit and figures.unexplained > CHECKS.exact
    # Where responses are uncertain by half of themselves, their median, mean and most likely value are different lengths of x.
    severe = matters and figures.uneven > 1 and figures.rough > CHECKS.rough
    return Check(
        "evenness of the noise",
        figures.uneven,
        limit,
        matters,
        severe,
        "the noise is proportional to the signal (speckle, a gain of its own for every row), so its norm is not determined"
        if severe
        else "the noise grows with the signal (counts, multiplicative noise)",
        "Take the direction of the answer only, or average the responses to equal rows first."
        if severe
        else "The answer stands; certificates allow for it, flags of large responses are rough.",
    )


def _row_order(figures: Figures, *, ordered: bool) -> Iterator[Check]:
    """What goes together along the rows, which are in the order of time unless they are those of an operator.

    Neighbouring rows of an operator are neighbours on a detector: its blur, and whatever small part of the object or the
    instrument the model leaves out, reach over several of its pixels, and say nothing of a drift.
    """
    limit = max(CHECKS.deviations / np.sqrt(max(figures.checked, 1)), CHECKS.trend)
    limit = limit if figures.unexplained > CHECKS.exact else 1.0
    for name, figure, cause in (
        ("neighbouring residuals", figures.neighbours, "residuals of neighbouring rows go together"),
        ("drift of the background", figures.drift, "the background drifts along the rows"),
        ("drift of the gain", figures.gain, "the gain drifts along the rows"),
    ):
        yield Check(
            name,
            figure,
            float(limit),
            abs(figure) > limit,
            abs(figure) > limit + CHECKS.strong_trend - CHECKS.trend and (ordered or name != "neighbouring residuals"),
            cause,
            "Fit shorter stretches of rows, or divide the responses by a reference.",
        )


def _turn(figures: Figures) -> Check:
    turns = figures.turn_evidence > CHECKS.deviations * 2 and figures.turn > CHECKS.turn
    turns &= figures.unexplained > CHECKS.exact
    return Check(
        "drift of the signal",
        figures.turn,
        CHECKS.turn,
        turns,
        turns,
        "the first and the last half of the rows tell of different signals: it changed while it was measured",
        "Fit shorter stretches of rows.",
    )


def _design_checks(design: Design, n: int, whitened: bool) -> Iterator[Check]:
    remedy = (
        "The rows were whitened already: check them for constant or duplicate columns."
        if whitened
        else "Try whiten=True if the rows are Gaussian with another scale or covariance, or standardise the columns of A."
    )
    rows = max(design.rows, 1)
    scale_limit = max(CHECKS.scale, CHECKS.deviations * 1.8 / np.sqrt(n * rows)) + 2 / (9 * n) * 3
    yield Check(
        "scale of the rows",
        design.scale,
        1.0 + float(scale_limit),
        abs(design.scale - 1) > scale_limit,
        False,
        "the entries of A do not have mean square one",
        remedy,
    )
    shift_limit = max(CHECKS.shift, (1 + CHECKS.deviations * np.sqrt(2 / n)) / rows * 2)
    yield Check(
        "mean of the rows",
        design.shift,
        float(shift_limit),
        design.shift > shift_limit,
        False,
        "the rows of A are not centred",
        remedy,
    )
    chance = CHECKS.deviations * np.sqrt(2 / n) * np.sqrt(n / rows)
    spread_limit = CHECKS.spread + float(chance)
    yield Check(
        "covariance of the rows",
        design.spread,
        spread_limit,
        design.spread > spread_limit,
        design.spread > CHECKS.wide + chance,
        "the rows of A have a covariance far from the identity",
        remedy,
    )
    if not np.isnan(design.curvature):
        yield Check(
            "curvature",
            design.curvature,
            CHECKS.curvature,
            design.curvature < CHECKS.curvature,
            design.curvature < CHECKS.flat * min(design.scale, 1.0) ** 2,
            "the rows of A do not determine the signal: constant, duplicate or missing columns, few distinct rows, or patterns "
            "that cannot tell signals apart",
            "Look at the singular values of A; use other rows, or fewer unknowns.",
        )
