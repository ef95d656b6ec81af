r"""Evidence that samples share: a group of samples is bad together where its residuals are wider than those of the other groups.

One sample of a wrong row often looks plausible; forty of them do not. Under the fitted noise model the samples of a group g have
the likelihood

.. math:: L_g(\tau, \pi_g) = \prod_{j \in g} \big[(1 - \pi_g)\, p(r_j / \tau)/\tau + \pi_g f(y_j)\big],

with a width τ of the noise and a share π_g of bad responses of its own; p, f and the share π of single bad responses are those of
:mod:`robustphase.likelihood.noise_model`. Good groups have the share π and widths whose logarithms are normal around the typical
one, with a spread that the groups themselves tell: instruments have frames that are noisier than others, and such a frame is not
bad. A bad group has some larger width, or a share of bad responses that makes it bad by majority. How large is either unknown,
each as likely as the other, or bad groups are alike too: their log widths are normal, with a centre and a spread of their own.
That takes more parameters and says more where it holds, as in scans, whose misplaced frames are all wider by about as much; but
only bad groups with a mode of their own are another kind of groups, others are the tail of the good ones. A
share of the groups is bad, and expectation maximisation over the groups finds it along with the rest. Some good groups have more
bad responses than others, but far from a majority: a small group with a few stray ones would else be nearest to a half bad one.
Where bad groups do not explain the residuals better than chance allows, all groups are good, and nothing at all changes in a fit;
what the samples say of their groups is kept even so, as the probability of bad groups by Schwarz's criterion times that of each
to be one of them.

Rows behind many signals are groups too: the p responses of a row share its covariates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import expit

from robustphase.constants import TINY, budget, derived, numeric
from robustphase.likelihood.noise_model import NOISE, NoiseModel

Array = NDArray[Any]


@dataclass(frozen=True)
class SharedOptions:
    """Constants of the shared evidence."""

    spacing: float = numeric(float(np.log(2) / 2), "step of the logarithm of the widths that are compared")
    finer: int = numeric(4, "widths between two of these, at which likelihoods are interpolated: they are smooth")
    narrowest: int = numeric(-3, "steps down to the narrowest width: a good group may be quieter than the others")
    widest: int = numeric(10, "steps up to the widest: at 32 times the noise nearly all responses count as bad instead")
    stray: float = derived(
        0.1,
        "share of bad responses in a good group that has more of them than others: far from one half, unlike 0.2 or 0.3",
    )
    handful: float = derived(
        5.0, "responses that may have strayed by accident: in groups of which a tenth is more, none have"
    )
    independent: float = derived(
        400.0,
        "responses of a group that count, at most: they tell its log width to half the distance of those that are compared",
    )
    strayed: float = derived(
        0.1, "largest part of the good groups that have so many: what more of them have is the rule"
    )
    shares: tuple[float, float] = derived(
        (0.5, 0.95), "shares of bad responses that make a group bad: half of them, or as good as all"
    )
    gain: float = derived(
        0.5, "gain in log-likelihood, in log(groups) per parameter, that bad groups must be worth: Schwarz's criterion"
    )
    parameters: int = derived(
        2, "that bad groups add: their share, and whether they differ in width or in bad responses"
    )
    equal: float = derived(
        1.0, "good groups of which strayed ones have their even part before any is seen: as much as one group says"
    )
    conceivable: float = numeric(1e-6, "least probability of bad groups: with less, weights would not rank the groups")
    learned: int = derived(2, "further ones where bad groups are alike: centre and spread of their log widths")
    fewest: float = derived(2.0, "responses without which a group shares nothing")
    rounds: int = budget(100, "most rounds of expectation maximisation")
    settled: float = numeric(1e-3, "gain in log-likelihood at which it is over")
    tiny_scale: float = numeric(1e-9, "noise below it, in units of the responses, is rounding, which has no law")
    rows: int = budget(4096, "samples whose evidence is computed together")

    @property
    def log_widths(self) -> Array:
        """Logarithms of the widths at which likelihoods are computed; that of the fitted noise is zero."""
        return self.spacing * np.arange(self.narrowest, self.widest + 1)

    @property
    def fine_widths(self) -> Array:
        """Logarithms of the widths that are compared."""
        return self.spacing / self.finer * np.arange(self.finer * self.narrowest, self.finer * self.widest + 1)

    @property
    def least_spread(self) -> float:
        """Least spread of the log widths of good groups: less does not show at this distance of the widths."""
        return self.spacing / self.finer / 2


SHARED = SharedOptions()


class GroupEvidence(NamedTuple):
    """What the samples say of their groups.

    Attributes
    ----------
    weights : ndarray of shape (G,)
        Probability of every group to be good.
    log_odds : ndarray of shape (G,)
        Logarithm of the odds of being bad, before the share of bad groups enters: the evidence alone.
    widths : ndarray of shape (G,)
        Width of the residuals of a group over that of the fitted noise.
    bad_shares : ndarray of shape (G,)
        Probability that most of its responses are bad one by one.
    sizes : ndarray of shape (G,)
        Responses that counted.
    found : bool
        Whether bad groups explain the residuals better than chance allows. If not, a fit counts all groups as good, and the
        weights, all above one half, only rank them.
    """

    weights: Array
    log_odds: Array
    widths: Array
    bad_shares: Array
    sizes: Array
    found: bool

    @property
    def used(self) -> Array:
        """Weights that a fit makes use of."""
        return self.weights if self.found else np.ones_like(self.weights)


def row_likelihoods(residuals: Array, spreads: Array, density: Array, weights: Array, model: NoiseModel) -> Array:
    """Log-likelihood of the responses of every row under each kind of group, shape (m, kinds): widths, then shares of bad ones.

    Parameters
    ----------
    residuals, spreads : ndarray of shape (m, k)
        Response minus prediction, and the variances of the predictions, which are added to the squares: negative for samples
        that the prediction knows nothing of.
    density : ndarray of shape (m, 1) or (m, k)
        Density of bad responses.
    weights : ndarray of shape (m, 1) or (m, k)
        How much each response counts.
    model : NoiseModel
        The models of the columns.
    """
    m, k = residuals.shape
    precision: Any = np.float64 if k == 1 else np.float32
    scales = np.maximum(model.scales, SHARED.tiny_scale)
    fitted = model._replace(scales=scales)
    kinds = [(float(width), model.mixing) for width in SHARED.log_widths]
    kinds += [(0.0, np.full(model.mixing.shape, share)) for share in (SHARED.stray, *SHARED.shares)]
    log_peak = np.log(fitted.density(np.zeros((1, k)))[0])
    peaks = [np.log1p(-share) + log_peak - width for width, share in kinds]
    likelihoods = np.empty((m, len(kinds)))
    with np.errstate(over="ignore"):
        for low in range(0, m, SHARED.rows):
            part = slice(low, low + SHARED.rows)
            standard: Array = np.clip(residuals[part] / scales, -NOISE.largest, NOISE.largest).astype(precision)
            squares: Array = standard * standard
            squares *= np.where(standard > 0, model.skews**-2, 1.0).astype(precision)
            squares += np.minimum(spreads[part] / (scales**2 * model.skews), NOISE.largest).astype(precision)
            # What was given up may have a negative variance of its prediction to be added, but no negative square.
            np.maximum(squares, 0, out=squares)
            squares *= model.tails.astype(precision)
            bad, counts = density[part].astype(precision), weights[part].astype(precision)
            exponent = (-(model.degrees + 1) / 2).astype(precision)
            for kind, ((width, share), peak) in enumerate(zip(kinds, peaks, strict=True)):
                value: Array = np.log1p(squares * precision(np.exp(-2 * width)))
                value *= exponent
                value += peak.astype(precision)
                np.exp(value, out=value)
                value += bad * share.astype(precision)
                # A response that neither law expects, as one at the ceiling, may have no weight, and no logarithm.
                np.log(np.maximum(value, np.finfo(precision).tiny, out=value), out=value)
                value *= counts
                likelihoods[part, kind] = value.sum(axis=1, dtype=np.float64)
    return likelihoods


def group_evidence(likelihoods: Array, sizes: Array, codes: Array, count: int, most: float) -> GroupEvidence | None:
    """What the samples say of their groups; None where fewer than two groups share anything.

    Parameters
    ----------
    likelihoods : ndarray of shape (m, kinds)
        Of :func:`row_likelihoods`, times the weights that other groupings leave to the rows.
    sizes : ndarray of shape (m,)
        Responses of every row that count.
    codes : ndarray of int, shape (m,)
        Group of every row.
    count : int
        Number of groups.
    most : float
        Largest share of bad groups.
    """
    responses = np.bincount(codes, sizes, minlength=count)
    informed = responses >= SHARED.fewest
    if informed.sum() < SHARED.fewest:
        return None
    total = _refined(np.stack([np.bincount(codes, column, minlength=count) for column in likelihoods.T], axis=1))
    # Large groups would tell their widths more closely than these are compared, and more surely than any noise model is true.
    total *= np.minimum(SHARED.independent / np.maximum(responses, 1.0), 1.0)[:, np.newaxis]
    # Rows behind many signals are groups of their own: what strays there strays in every row.
    total[(responses * SHARED.stray > SHARED.handful) | (count == codes.size), SHARED.fine_widths.size] = -np.inf
    relative = np.exp(total - total.max(axis=1, keepdims=True))
    unit = SHARED.gain * float(np.log(informed.sum()))
    fit, gain = max(
        (_best_mixture(relative[informed], most, learned=learned, unit=unit) for learned in (False, True)),
        key=lambda one: one[1],
    )
    gain -= _best_mixture(relative[informed], 0.0, learned=False, unit=0.0)[1]
    good, bad = fit.kinds()
    log_odds = np.log(np.maximum(relative @ bad, TINY)) - np.log(np.maximum(relative @ good, TINY))
    log_widths = SHARED.fine_widths
    by_width = relative[:, : log_widths.size]
    found = gain >= 0
    prior = np.log(max(fit.share, TINY)) - np.log1p(-fit.share)
    weights = expit(-log_odds - prior)
    if not found:
        weights = 1 - (1 - weights) * max(float(expit(gain)), SHARED.conceivable)
    return GroupEvidence(
        np.where(informed, weights, 1.0),
        np.where(informed, log_odds, 0.0),
        np.exp(by_width @ log_widths / np.maximum(by_width.sum(axis=1), TINY)),
        relative[:, -len(SHARED.shares) :].sum(axis=1) / relative.sum(axis=1),
        responses,
        found,
    )


def _refined(total: Array) -> Array:
    """Log-likelihoods of groups at all widths that are compared, then those of the shares."""
    coarse = SHARED.log_widths
    fine = CubicSpline(coarse, total[:, : coarse.size], axis=1)(SHARED.fine_widths)
    return np.concatenate((fine, total[:, coarse.size :]), axis=1)


class _Alike(NamedTuple):
    """Bad groups that are alike: centre and spread of their log widths."""

    centre: float
    spread: float


class _Mixture(NamedTuple):
    """Groups that are good, with a centre and a spread of their log widths, and a share of groups that are not.

    Of the good ones the part ``strayed`` has more bad responses than others.
    """

    centre: float
    spread: float
    share: float
    strayed: float
    bad: _Alike | None

    def kinds(self) -> tuple[Array, Array]:
        """Probabilities of the kinds for good and for bad groups."""
        log_widths = SHARED.fine_widths
        usual = (1 - self.strayed) * _normal(log_widths, self.centre, self.spread)
        others, even = len(SHARED.shares), self._even_part()
        good = np.concatenate((usual, [self.strayed], np.zeros(others)))
        wide = log_widths > self.centre + self.spread
        by_width = np.zeros(log_widths.size)
        if wide.any():
            alike = self.bad
            by_width[wide] = 1 / wide.sum() if alike is None else _normal(log_widths[wide], alike.centre, alike.spread)
        return good, np.concatenate(((1 - others * even) * by_width, [0.0], np.full(others, even)))

    def _even_part(self) -> float:
        """Part of the bad groups with each share of bad responses: these and all larger widths are equally likely."""
        return 1 / (int(np.count_nonzero(SHARED.fine_widths > self.centre + self.spread)) + len(SHARED.shares))

    def has_two_modes(self, error: float) -> bool:
        """Whether bad groups have a mode of their own where log widths are known with this error.

        Two normal laws of equal shares have two modes if their centres are farther apart than the sum of their deviations.
        """
        if self.bad is None:
            return True
        reach = np.hypot(self.spread, error) + np.hypot(self.bad.spread, error)
        return bool(self.bad.centre - self.centre > reach)

    def renewed(self, relative: Array, most: float) -> tuple[_Mixture, float]:
        """One round of expectation maximisation; and the log-likelihood before it."""
        good, bad = self.kinds()
        good, bad = (1 - self.share) * good, self.share * bad
        either = np.maximum(relative @ (good + bad), TINY)
        # Expected number of groups of each kind, good and bad.
        log_widths, seen = SHARED.fine_widths, (1 / either) @ relative
        good, bad = good * seen, bad * seen
        centre, spread = _moments(good[: log_widths.size])
        share = min(max(1 - float(good.sum()) / len(relative), 0.0), most)
        spread = max(spread, SHARED.least_spread)
        alike = self.bad
        if alike is not None:
            middle, width = _moments(bad[: log_widths.size])
            # Bad groups differ among themselves at least as much as good ones do.
            alike = _Alike(middle, max(width, spread))
        before = SHARED.equal * self._even_part()
        strayed = min(float((good[log_widths.size] + before) / (good.sum() + SHARED.equal)), SHARED.strayed)
        strayed *= self.strayed > 0
        return _Mixture(centre, spread, share, strayed, alike), float(np.log(either).sum())


def _normal(log_widths: Array, centre: float, spread: float) -> Array:
    """Normal probabilities of these widths."""
    squares = ((log_widths - centre) / spread) ** 2
    values: Array = np.exp(-0.5 * (squares - squares.min()))
    values /= values.sum()
    return values


def _moments(counts: Array) -> tuple[float, float]:
    """Mean and standard deviation of log widths that were counted."""
    log_widths = SHARED.fine_widths
    mass = max(float(counts.sum()), TINY)
    centre = float(counts @ log_widths) / mass
    return centre, float(np.sqrt(counts @ (log_widths - centre) ** 2 / mass))


def _errors(relative: Array) -> Array:
    """Standard deviations of the log widths of groups by their own samples alone, shape (G,)."""
    log_widths = SHARED.fine_widths
    by_width = relative[:, : log_widths.size]
    by_width = by_width / np.maximum(by_width.sum(axis=1, keepdims=True), TINY)
    centres = by_width @ log_widths
    errors: Array = np.sqrt(np.maximum(by_width @ log_widths**2 - centres**2, 0.0))
    return errors


def _best_mixture(relative: Array, most: float, *, learned: bool, unit: float) -> tuple[_Mixture, float]:
    """The mixture of good and bad groups with the largest likelihood, and its logarithm, less what its parameters cost.

    Wide groups are bad, or good ones of a large spread, and either explanation holds on to itself; so both are tried.
    Likelihoods (G, kinds) are over the largest of each group. ``learned`` says whether bad groups are alike, ``unit`` what a
    parameter costs.
    """
    widths = SHARED.fine_widths[np.argmax(relative[:, : SHARED.fine_widths.size], axis=1)]
    low, centre, high = np.quantile(widths, (0.25, 0.5, 0.75))
    widest = widths[widths >= np.quantile(widths, 1 - most)]
    error = float(np.median(_errors(relative)))
    first = 1 / relative.shape[1] if relative[:, SHARED.fine_widths.size].any() else 0.0
    fits = []
    for spread in (0.0, float(high - low)):
        spread = max(spread, SHARED.least_spread)
        alike = _Alike(float(widest.mean()), max(float(widest.std()), spread)) if learned else None
        fit = _Mixture(float(centre), spread, most / 2, first, alike)
        value = -np.inf
        for _ in range(SHARED.rounds):
            before = value
            renewed, value = fit.renewed(relative, most)
            if value - before < SHARED.settled:
                break
            fit = renewed
        value -= unit * (SHARED.parameters + SHARED.learned * learned)
        fits.append((fit, value if fit.has_two_modes(error) else -np.inf))
    return max(fits, key=lambda one: one[1])
