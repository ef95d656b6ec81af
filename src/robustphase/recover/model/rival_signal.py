"""Another signal that explains the samples which were flagged.

Bad samples that tell of one other signal are what a decoy looks like, and up to the stated contamination they are expected. Where
a part of the rows is told wrongly, where gains differ between parts of the data, or where most of the samples are bad, the
other signal, the *rival*, explains more of the samples than may be bad. Flags alone do not tell: heavy tails are flagged too, but
do not agree with each other. Samples at which both signals predict about the same are kept whatever they tell of, so how many
there really are is seen among the samples at which the predictions differ; but an adversary chooses its samples among those, and
then the rival has few of some kind.

There are three candidates: the answer itself at another gain, its conjugate, which rows told with the other sign of their phases
ask for, and what is found among the flagged samples alone, if they are enough to determine a signal: from a leading eigenvector
of their responses, or one across the answer, by population-Newton steps on the better part of the residuals, and then among all
samples that it is closer to. The first costs nothing and is looked at also where no more samples are flagged than may
be bad: of two gains in turn only the samples with large predictions are flagged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv, sposv

from robustphase.constants import TINY, budget, derived, empirical, numeric
from robustphase.population import solution_curvature
from robustphase.recover.model.residuals import median
from robustphase.rows.products import abs2, adjoint_block, project_block
from robustphase.rows.source import Array

#: Half of the better 85% of the absolute values of normal variables are below this many standard deviations.
_NORMAL_HALF = 0.5651


@dataclass(frozen=True)
class RivalOptions:
    """Constants of the search for a rival."""

    samples: float = derived(2.0, "flagged samples per real unknown from which on they determine a signal")
    fewest: int = numeric(20, "flagged samples from which on a gain can be read off them")
    power_steps: int = budget(12, "steps of the power method")
    starts: int = budget(3, "starts: eigenvectors of the flagged responses, of all and across what is known")
    nearly_all: float = empirical(
        0.9, "share of the flagged samples from which on a rival in all of them needs one start"
    )
    steps: int = budget(40, "Newton steps; only fits with more flags than expected take them")
    look: int = budget(4, "steps between two looks at the residuals")
    stalled: float = numeric(0.97, "residuals over those of the last look from which on steps lead nowhere")
    promising: float = numeric(1.5, "residuals over the least so far beyond which a start is not followed to its end")
    trying: int = budget(4, "Gauss-Newton steps that show where a start leads")
    settling: int = budget(10, "Gauss-Newton steps on all samples that the rival is closer to")
    direct: int = budget(
        64, "most real unknowns for which the normal equations of a Gauss-Newton step are made and solved"
    )
    products: int = budget(15, "conjugate gradients of a Gauss-Newton step")
    inexact: float = numeric(0.1, "gradient that a step may leave: the next one starts from another place anyway")
    trimmed: float = empirical(0.85, "share of the flagged samples with the smallest residuals that lead the steps")
    damping: float = empirical(0.8, "length of the steps")
    longest: float = numeric(0.5, "longest step over the norm")
    settled: float = numeric(
        1e-4, "steps over the norm below which least squares are reached: no support depends on less"
    )
    explained: float = derived(3.0, "scales of the noise within which a sample is explained")
    barely: float = derived(1.5, "scales of the noise by which predictions must differ to tell of a share at all")
    agree: float = derived(2.0, "standard errors that a share may have by chance")
    all_agree: float = derived(2.5, "the same for the least of five kinds of samples, one mixture in thirty")
    least: float = derived(0.02, "share of all samples below which it does not matter where a rival has them")
    coarse: float = empirical(0.03, "least scale, over the energy of the signal: a rival is found only roughly")
    widest: float = empirical(0.25, "largest scale of a rival's residuals: what is wider explains nothing")


RIVAL = RivalOptions()


class Rival(NamedTuple):
    """Samples that a rival explains and the answer does not.

    Attributes
    ----------
    share : float
        Over all samples: so many are bad at least, if the answer is right.
    everywhere : float
        Over the samples that tell the two apart, if the share is the same in all kinds of them, else the least of the kinds:
        where the rival predicts barely something else, and where it predicts more or less, clearly or very clearly. An
        adversary that chooses its samples leaves out some kind of them; a mixture of two signals does not, and this is the
        share of the rival in it.
    gain : float, default=1.0
        Another gain at which the answer explains flagged samples.
    at_gain : float, default=0.0
        The same as ``everywhere`` of the answer at that gain, less the errors that it may have.
    """

    share: float
    everywhere: float
    gain: float = 1.0
    at_gain: float = 0.0


class Least(NamedTuple):
    """What a rival must explain to be of interest.

    Attributes
    ----------
    of_flagged : float
        Share of the flagged samples. From one on only the answer at another gain is of interest.
    of_all : float
        Share of all samples: no other rival is sought where none can explain so many.
    """

    of_flagged: float = 0.0
    of_all: float = 0.0


#: Every rival is of interest.
ANY = Least()


def find_rival(
    rows: Array,
    residuals: Array,
    predictions: Array,
    flagged: Array,
    signal: Array,
    scale: float,
    *,
    least: Least = ANY,
) -> Rival:
    """Seek a rival of a signal.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        Rows that can be used.
    residuals, predictions : ndarray of shape (m,)
        What the answer predicts, and responses minus that.
    flagged : ndarray of bool, shape (m,)
        Which samples are flagged.
    signal : ndarray of shape (n,)
        The answer.
    scale : float
        Of the residuals that are kept.
    least : Least, optional
        What a rival must explain to be of interest.
    """
    unknowns = signal.size * (2 if np.iscomplexobj(signal) else 1)
    energy, count = float(np.vdot(signal, signal).real), int(np.count_nonzero(flagged))
    if count < RIVAL.fewest or not energy > 0:
        return Rival(0.0, 0.0)
    y = np.clip(residuals[flagged] + predictions[flagged], -1e6 * energy, 1e6 * energy)

    def support(ahead: Array, *, one_sided: bool) -> tuple[float, float]:
        left, best = np.abs(y - ahead[flagged]), max(int(RIVAL.trimmed * count), 1)
        # The median of the better part.
        own = float(np.partition(left, best // 2)[best // 2]) / _NORMAL_HALF
        wide = max(scale, min(own, RIVAL.widest * energy), RIVAL.coarse * energy)
        matters = RIVAL.least if one_sided else max(least.of_all, RIVAL.least)
        share, everywhere = _support(residuals, ahead - predictions, wide, matters, one_sided=one_sided)
        # Samples in the tails of the noise that are not flagged agree with the answer, whatever else explains them.
        return min(share, count / flagged.size), everywhere

    gain = _gain(y, predictions[flagged])
    share, at_gain = support(gain * predictions, one_sided=True)
    if least.of_flagged >= 1:
        return Rival(0.0, 0.0, gain, at_gain)
    found = Rival(share, 0.0, gain, at_gain)
    if _most(residuals, predictions, scale, energy) < least.of_all * flagged.size:
        return found

    def stronger(known: Rival, rival: Array) -> Rival:
        other, everywhere = support(abs2(project_block(rows, rival)), one_sided=False)
        return known if known.share >= other else known._replace(share=other, everywhere=everywhere)

    if np.iscomplexobj(rows):
        found = stronger(found, signal.conj())
    if count < RIVAL.samples * unknowns:
        return found
    # Of flagged samples that are nearly all a rival's, the first start leads to it.
    nearly_all = least.of_flagged > RIVAL.nearly_all
    rival = _found(rows[flagged], y, signal, scale, 1 if nearly_all else RIVAL.starts)
    if nearly_all:
        # Then what explains the flagged samples best has little to gain from others: no more than chance.
        at_once = stronger(found, rival)
        explained = at_once.share * flagged.size
        if explained + RIVAL.agree * math.sqrt(explained) < least.of_all * flagged.size:
            return at_once
    # The rival's samples at which the answer is not far off were not flagged, and tell more of it.
    every = np.clip(residuals + predictions, -1e6 * energy, 1e6 * energy)
    rival = _settled(rows, every, np.abs(residuals), rival, RIVAL.settling)
    return stronger(found, rival)


def _most(residuals: Array, predictions: Array, scale: float, energy: float) -> int:
    """The most samples that any signal explains instead of the answer: those it leaves unexplained, and that are not negative.

    How wide the residuals of a rival are is not known before it is found, so either limit is taken where it allows for more.
    """
    narrow, wide = (RIVAL.explained * max(scale, share * energy) for share in (RIVAL.coarse, RIVAL.widest))
    return int(np.count_nonzero((np.abs(residuals) > narrow) & (residuals + predictions > -wide)))


def _gain(y: Array, predictions: Array) -> float:
    """Typical ratio of responses to large predictions."""
    large = predictions >= median(predictions)
    return max(median(y[large] / np.maximum(predictions[large], TINY)), 0.01)


def _found(rows: Array, y: Array, signal: Array, scale: float, starts: int) -> Array:
    """What explains these samples best, from the first start that leads to it or else from the best."""
    typical = max(median(y), TINY)
    weights = np.clip(y, 0.0, 3 * typical)
    known: list[Array] = []
    every = np.full(y.size, np.inf)
    best, least = signal, np.inf
    for _ in range(starts):
        vector = _leading(rows, weights, signal, known)
        length = math.sqrt(typical / max(median(abs2(project_block(rows, vector))), TINY))
        rival = _descended(rows, y, length * vector, RIVAL.steps)
        if starts == 1:
            return _settled(rows, y, every, rival, RIVAL.trying)
        misfit = _misfit(rows, y, rival)
        if misfit < RIVAL.promising * least:
            rival = _settled(rows, y, every, rival, RIVAL.trying)
            misfit = _misfit(rows, y, rival)
        if misfit < least:
            best, least = rival, misfit
        if least <= scale:
            break
        # Samples are flagged where the answer predicts something else. So it decides which rows are here, and shows in their
        # responses though it does not explain them: look across it, and then across what that led to.
        known.append(vector if known else _unit(signal))
    return best


def _leading(rows: Array, weights: Array, signal: Array, known: list[Array]) -> Array:
    """A leading eigenvector of bounded responses, across vectors that are known."""
    vector = _unit(signal)
    # From a mixture of the answer and of what the samples say at once, so that neither is met with a right angle.
    vector = vector + _unit(adjoint_block(rows, weights * project_block(rows, np.roll(vector, 1))))
    for _ in range(RIVAL.power_steps):
        for earlier in known:
            vector = vector - earlier * np.vdot(earlier, vector)
        vector = _unit(adjoint_block(rows, weights * project_block(rows, vector)))
    return vector


def _misfit(rows: Array, y: Array, signal: Array) -> float:
    """Mean of the smaller residuals, which are those that led the steps."""
    count = max(int(RIVAL.trimmed * y.size), 1)
    sizes = np.abs(y - abs2(project_block(rows, signal)))
    misfit = float(np.partition(sizes, count - 1)[:count].sum()) / count
    return misfit if math.isfinite(misfit) else np.inf


def _descended(rows: Array, y: Array, signal: Array, steps: int) -> Array:
    count, before = max(int(RIVAL.trimmed * y.size), 1), np.inf
    for number in range(steps):
        s = project_block(rows, signal)
        residuals = abs2(s) - y
        sizes = np.abs(residuals)
        smaller = np.partition(sizes, count - 1)[:count]
        if number % RIVAL.look == 0:
            misfit = float(smaller.sum())
            if not misfit < RIVAL.stalled * before:
                break
            before = misfit
        used = sizes <= smaller[-1]
        gradient = adjoint_block(rows, np.where(used, residuals, 0.0) * s) / count
        step = _newton(signal, gradient)
        length, norm = _length(step), _length(signal)
        if not length < np.inf:
            break
        signal = signal - step.astype(signal.dtype, copy=False) * (RIVAL.damping * _shortened(length, norm))
    return signal


def _newton(signal: Array, gradient: Array) -> Array:
    """The population-Newton step of :func:`robustphase.population.newton_step`, without what it does for many signals."""
    across, along = solution_curvature(signal)
    unit = _unit(signal)
    radial = np.vdot(unit, gradient)
    step: Array = gradient / max(across, TINY) + unit * (radial.real / max(along, TINY) - radial / max(across, TINY))
    return step


def _shortened(length: float, norm: float) -> float:
    """The factor that makes a step as long as it may be."""
    return min(1.0, RIVAL.longest * norm / max(length, TINY))


def _settled(rows: Array, y: Array, known: Array, signal: Array, steps: int) -> Array:
    """The least squares of the samples that a signal is closer to than the answer is, whose residuals have the sizes ``known``.

    Population-Newton steps count on many samples per unknown; of few they stop far from the least squares, and then a rival seems
    to explain fewer samples than it does. Gauss-Newton steps take the curvature of the samples themselves.
    """
    before = np.inf
    for _ in range(steps):
        s = project_block(rows, signal)
        left = y - abs2(s)
        sizes = np.abs(left)
        own = np.flatnonzero(sizes < known)
        if own.size < RIVAL.fewest:
            break
        count = max(int(RIVAL.trimmed * own.size), 1)
        used = own[np.argpartition(sizes[own], count - 1)[:count]]
        misfit = float(sizes[used].sum()) / count
        if not misfit < before:
            break
        before = misfit
        step = _gauss_newton(rows[used], s[used], left[used])
        length, norm = _length(step), _length(signal)
        if not 0 < length < np.inf:
            break
        signal = signal + step.astype(signal.dtype, copy=False) * _shortened(length, norm)
        if length < RIVAL.settled * norm:
            break
    return signal


def _gauss_newton(rows: Array, s: Array, left: Array) -> Array:
    """The step d that makes ``left − 2 Re(s̄ A d)`` small: of few real unknowns the least squares, else nearly so."""
    if rows.dtype.kind != "c" and s.dtype.kind != "c" and rows.shape[1] <= RIVAL.direct:
        tangents = rows * (2 * s).astype(rows.dtype)[:, np.newaxis]
        # From LAPACK itself: what stands around it takes longer than it does.
        solve = sposv if rows.dtype == np.float32 else dposv
        _, step, failed = solve(tangents.T @ tangents, left.astype(rows.dtype) @ tangents)
        if not failed:
            return np.asarray(step, np.float64)
    return _by_conjugate_gradients(rows, s, left)


def _by_conjugate_gradients(rows: Array, s: Array, left: Array) -> Array:
    """The same step, by a few products with the rows."""

    def forward(direction: Array) -> Array:
        return np.asarray(2 * (s.conj() * project_block(rows, direction)).real)

    def backward(values: Array) -> Array:
        return 2 * adjoint_block(rows, values * s)

    gradient = backward(left)
    step, direction, energy = np.zeros_like(gradient), gradient, float(np.vdot(gradient, gradient).real)
    little = RIVAL.inexact**2 * energy
    for _ in range(RIVAL.products):
        image = forward(direction)
        curvature = float(image @ image)
        if not curvature > 0 or not energy > little:
            break
        step = step + energy / curvature * direction
        left = left - energy / curvature * image
        gradient = backward(left)
        before, energy = energy, float(np.vdot(gradient, gradient).real)
        direction = gradient + energy / before * direction
    return step


def _support(
    residuals: Array, differences: Array, scale: float, matters: float, *, one_sided: bool
) -> tuple[float, float]:
    """Share of the samples that a rival explains, whose predictions differ by so much, of all and of every kind.

    Where the first is no more than what matters, it does not matter where they are.

    Some are in the tails of the noise. Those lie on either side of the answer, so as many as the rival would explain if all
    residuals had the other sign, and what chance adds, are not counted as its own: bad samples alone reach a stated level.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        ahead, left = differences / scale, residuals / scale
        far = np.abs(left) > RIVAL.explained
        supports = (np.abs(left - ahead) < RIVAL.explained) & far
        tails = int(np.count_nonzero((np.abs(left + ahead) < RIVAL.explained) & far))
    own = int(np.count_nonzero(supports)) - tails - RIVAL.agree * math.sqrt(2 * tails)
    share = max(own, 0.0) / max(ahead.size, 1)
    return share, _everywhere(left, ahead, supports, one_sided=one_sided) if share > matters else 0.0


def _everywhere(left: Array, ahead: Array, supports: Array, *, one_sided: bool) -> float:
    """The share of a rival in all kinds of samples where they agree, else the least with a standard error on top.

    All in units of the noise. The answer at another gain predicts more everywhere, or less, and so does what an adversary erases;
    of such a rival the share is told less the errors that it may have.
    """
    size = np.abs(ahead)
    clear = size > 2 * RIVAL.explained
    barely = np.flatnonzero((size > RIVAL.barely) & ~clear)
    if barely.size < RIVAL.fewest:
        return 0.0
    # Where the noise hides which samples are the rival's, their mean still shows the share.
    by = ahead[barely]
    pulls = np.minimum(np.maximum(left[barely] / by, -1.0), 2.0)
    weights = by * by / float(by @ by)
    share = float(weights @ pulls)
    off = weights * (pulls - share)
    shares, errors = [share], [math.sqrt(float(off @ off))]
    told = max(int(np.count_nonzero(clear)), 1)
    overall = int(np.count_nonzero(supports & clear)) / told
    for on_this in (clear & (ahead > 0), clear & (ahead < 0)):
        here = np.flatnonzero(on_this)
        if here.size < RIVAL.fewest:
            if one_sided:
                continue
            return 0.0
        lower = size[here] <= median(size[here])
        own = supports[here]
        for kind in (lower, ~lower):
            count = max(int(np.count_nonzero(kind)), 1)
            shares.append(int(np.count_nonzero(own & kind)) / count)
            errors.append(math.sqrt(overall * (1 - overall) / count))
    if len(shares) < 2:
        return 0.0
    if all(share > overall - RIVAL.all_agree * error for share, error in zip(shares, errors, strict=True)):
        uncertain = RIVAL.agree * math.sqrt(overall * (1 - overall) / told) if one_sided else 0.0
        return max(overall - uncertain, 0.0)
    return max(min(share + error for share, error in zip(shares, errors, strict=True)), 0.0)


def _unit(vector: Array) -> Array:
    unit: Array = vector / max(_length(vector), TINY)
    return unit


def _length(vector: Array) -> float:
    """The length of a vector; NumPy's own norm takes several times as long for short ones."""
    return math.sqrt(float(np.vdot(vector, vector).real))
