"""What the theory says about the answers: balls that hold the signal if the stated contamination is right.

The gradient ``g_j`` of a sample asks for the displacement ``H⁻¹g_j``, H the curvature of the risk. The displacements of all
samples get a robust mean. A share ε of bad samples among those that are kept moves it by no more than their tail, the sum of
the share ε that goes farthest along the worst direction; the clean samples that were rewritten had a tail as well; and the
average of the clean ones differs from its expectation ``H⁻¹∇R(x)`` by ``sqrt(d λ/m)``, λ the variance along a typical
direction. That bounds the displacement that the risk asks for, and `population.reach` says how far the signal can be.

The paper bounds the mean of the gradients by ``C sqrt(ε λ)`` (Proposition 2.1) and divides by the least curvature, ``2‖x‖²``.
Gradients vary most along the signal, where the curvature is largest as well, and tails are at most ``sqrt(ε λ)``, mostly half of
that. The likelihood fit has no guarantee of its own, so it may not leave the paper's ball around the robust stationary point
``x − H⁻¹g``. A contamination that was found and not told is a count of those bad samples that can be recognised one by one;
others hide in the tails of the noise. So ε is then what the answers were fitted against.

Any weights certify that take away no more than the contamination and leave a small variance, wherever they come from. So the
engine's own are tried first, for all signals in common passes: every gradient is a multiple of a row, ``g_j = c_j a_j``, so
its mean and its covariance times a vector are products of the rows with one matrix. The mean estimator runs only where these
weights do not settle the matter.

Squared residuals have the tails of the noise, the answers do not. So the same is done, in the same passes, with pseudo-responses
whose residuals are bounded (`recover.influence`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import TINY, budget, derived, empirical, numeric
from robustphase.descend.robust_gradient import gradient_points, robust_gradient
from robustphase.means import MeanResult
from robustphase.population import NoiseMean, inverse_curvature, reach
from robustphase.population.real_rows import least_curvature
from robustphase.problem import kept, put_columns, real_unknowns
from robustphase.rows import OperatorRows, RowSource
from robustphase.rows.passes import in_slices
from robustphase.rows.products import abs2, adjoint_block, project_block
from robustphase.rows.source import Array, Parts


@dataclass(frozen=True)
class CertificateOptions:
    """Constants of the certificate."""

    constant: float = derived(
        2.0,
        "C of Proposition 2.1 beyond which an answer is brought back: a share ε moves the mean of points of the variance λ by "
        "sqrt(ε λ/(1 − ε)) at most, once where bad ones came in and once where clean ones were lost",
    )
    tails: float = empirical(
        3.0,
        "how many tails of the kept displacements the bad samples may be worth: they hold one, the clean samples that they have "
        "replaced held another, and what was trimmed with these is one more at most in all attacks that were searched for",
    )
    depth: int = budget(4, "passes that look for the worst direction")
    rounding: float = numeric(1e-9, "relative displacements below it are roundings")
    shortest: float = numeric(1e-150, "signals shorter than it count as that long: its square is still a number")


CERTIFICATE = CertificateOptions()


class Bounded(NamedTuple):
    """Responses with bounded residuals, and what may be wrong with them (`recover.influence`).

    Attributes
    ----------
    responses : ndarray of shape (m, k)
        Pseudo-responses, without a background.
    lost, hidden : ndarray of shape (k,)
        Shares of clean samples that may be missing among those that are kept, and of bad ones that may be among them.
    """

    responses: Array
    lost: Array
    hidden: Array


class Answers(NamedTuple):
    """Samples and what was found in them.

    Attributes
    ----------
    source : RowSource
        The covariates.
    responses, weights : ndarray of shape (m, k)
        Responses, and weights of the samples.
    signals : ndarray of shape (n, k)
        The answers.
    backgrounds, levels : ndarray of shape (k,)
        Noise means, and ε' of Proposition 2.1 for the contamination that the answers were fitted against.
    unknown_mean : bool or ndarray of shape (k,)
        Whether backgrounds were fitted.
    """

    source: RowSource
    responses: Array
    weights: Array
    signals: Array
    backgrounds: Array
    levels: Array
    unknown_mean: bool | Array

    @property
    def norms(self) -> Array:
        """Norms of the answers, at least the shortest that can be squared."""
        return np.asarray(np.maximum(np.linalg.norm(self.signals, axis=0), CERTIFICATE.shortest))

    @property
    def paired(self) -> bool:
        """Whether complex signals stand behind real rows."""
        return np.iscomplexobj(self.signals) and self.source.dtype.kind != "c"

    @property
    def noise_mean(self) -> NoiseMean:
        """Which of the paper's two models."""
        return "unknown" if self.unknown_mean else "zero"

    def displacements(self, gradients: Array) -> Array:
        """``H⁻¹g/‖x‖`` of every column: the displacements that gradients ask for, over the norms."""
        free = np.broadcast_to(self.unknown_mean, self.backgrounds.shape)
        moves = np.empty_like(gradients)
        models: tuple[tuple[NoiseMean, Array], ...] = (("zero", ~free), ("unknown", free))
        for noise_mean, columns in models:
            if columns.any():
                solve = inverse_curvature(self.signals[:, columns], noise_mean=noise_mean, real_rows=self.paired)
                moves[:, columns] = solve(gradients[:, columns])
        return np.asarray(moves / self.norms)

    def only(self, columns: Array) -> Answers:
        """Some of the answers."""
        names = ("responses", "weights", "signals", "backgrounds", "levels")
        return self._replace(**{name: getattr(self, name)[..., columns] for name in names})

    def beside(self, bounded: Bounded) -> Answers:
        """The answers twice: with their responses, and then with pseudo-responses, whose location was fitted in any case."""
        k = self.backgrounds.size
        return Answers(
            self.source,
            np.hstack((self.responses, bounded.responses)),
            np.hstack((self.weights, self.weights)),
            np.hstack((self.signals, self.signals)),
            np.concatenate((self.backgrounds, np.zeros(k))),
            np.concatenate((self.levels, bounded.lost)),
            np.concatenate((np.broadcast_to(self.unknown_mean, k), np.ones(k, bool))),
        )


class Gradients(NamedTuple):
    """What robust means of the gradients say.

    Attributes
    ----------
    means : ndarray of shape (n, k)
        The robust means of the gradients of k signals.
    variances : ndarray of shape (k,)
        Variances of the displacements ``H⁻¹g`` along their worst directions, over the squared norms of the signals.
    tails : ndarray of shape (k,)
        By how much the share ε of the displacements that goes farthest along these directions moves the mean, over the norms.
    typical : ndarray of shape (k,)
        Variances along all directions, on average.
    removed : ndarray of shape (k,)
        Shares of the samples that were taken away.
    """

    means: Array
    variances: Array
    tails: Array
    typical: Array
    removed: Array


class Pulls(NamedTuple):
    """Bounds on the displacements that pseudo-responses ask for, over the norms, each of shape (k,).

    Attributes
    ----------
    settled : ndarray
        By their mean and by chance.
    bad : ndarray
        By the tails of clean samples that are missing and of bad ones that were kept.
    typical : ndarray
        Their standard deviations along a typical direction.
    """

    settled: Array
    bad: Array
    typical: Array


class Certificates(NamedTuple):
    """Evidence from the robust gradients.

    Attributes
    ----------
    signals : ndarray of shape (n, k)
        The answers, brought back into their balls where they were outside.
    radii : ndarray of shape (k,)
        Distance from each answer within which its signal lies, relative to its norm, if the stated contamination is right.
        NaN for linear operators, whose curvature is not that of a Gaussian design.
    moved : ndarray of shape (k,)
        How far each was brought back, relative to its norm; zero almost always.
    gradients : Gradients
        The robust means.
    pulls : Pulls, optional
        What pseudo-responses ask for, if there are any.
    """

    signals: Array
    radii: Array
    moved: Array
    gradients: Gradients
    pulls: Pulls | None = None


def certify(
    answers: Answers, bounded: Bounded | None = None, *, mean_estimator: str = "filter", random_state: Any = None
) -> Certificates:
    """Check answers against the robust gradient.

    Parameters
    ----------
    answers : Answers
        The samples and the answers.
    bounded : Bounded, optional
        Pseudo-responses, for what they ask for.
    mean_estimator, random_state
        Which robust mean to take where the weights of the answers do not settle the matter.
    """
    # As numbers: roots of truth values would be taken in half precision.
    keep = kept(answers.weights).astype(np.float64)
    if isinstance(answers.source, OperatorRows):
        means, _ = _means(answers, keep)
        unknown = np.full(answers.backgrounds.size, np.nan)
        gradients = Gradients(means, unknown, unknown, unknown, 1.0 - keep.mean(axis=0))
        return Certificates(answers.signals, unknown, np.zeros(unknown.size), gradients)
    levels = np.maximum(answers.levels, 1.0 - keep.mean(axis=0))
    gradients, pulls = _gradients_and_pulls(answers, bounded, keep, levels)
    found = vouched(answers, gradients, levels)
    unsettled = (found.moved > 0) | ~keep.any(axis=0) | (mean_estimator != "filter")
    for column in np.flatnonzero(unsettled):
        one = answers.only(np.array([column]))
        points = gradient_points(
            one.source, one.responses[:, 0], one.signals[:, 0], background=float(one.backgrounds[0])
        )
        mean = robust_gradient(points, float(one.levels[0]), mean_estimator=mean_estimator, random_state=random_state)
        found = put_columns(found, vouched(one, _within(one, mean), one.levels), np.array([column]))
    return found._replace(pulls=pulls)


def _gradients_and_pulls(
    answers: Answers, bounded: Bounded | None, weights: Array, levels: Array
) -> tuple[Gradients, Pulls | None]:
    """The weighted means of the gradients, and in the same passes what pseudo-responses ask for."""
    if bounded is None:
        return weighted_gradients(answers, weights, levels), None
    k, m = levels.size, answers.source.shape[0]
    both = answers.beside(bounded)
    gradients, extents = _weighted(both, np.hstack((weights, weights)), np.concatenate((levels, bounded.lost)))
    squared, influences = (
        Gradients(*(part[..., columns] for part in gradients)) for columns in (slice(None, k), slice(k, None))
    )
    free = answers._replace(unknown_mean=True)
    offsets = np.linalg.norm(free.displacements(influences.means), axis=0)
    by_chance = np.sqrt(influences.typical * real_unknowns(answers.signals) / m)
    known = np.isfinite(influences.variances) & np.any(answers.signals, axis=0)
    settled = np.where(known, offsets + by_chance, np.inf)
    bad = influences.tails + _tails(extents[:, k:], bounded.hidden)
    return squared, Pulls(settled, bad, np.sqrt(influences.typical))


def weighted_gradients(answers: Answers, weights: Array, levels: Array) -> Gradients:
    """Weighted means of the gradients, and how far their displacements go along the worst directions.

    Parameters
    ----------
    answers : Answers
        The samples and the answers.
    weights : ndarray of shape (m, k)
        Weights of the gradients, or which of them are kept.
    levels : ndarray of shape (k,)
        ε of the tails.
    """
    return _weighted(answers, weights, levels)[0]


def _weighted(answers: Answers, weights: Array, levels: Array) -> tuple[Gradients, Array]:
    """The gradients, and how far each of their displacements goes along the worst direction from the mean, over their mass."""
    means, coefficients = _means(answers, weights)
    mass = np.maximum(weights.sum(axis=0), TINY)
    variances, worst = _worst_directions(answers, coefficients, mass, means)
    along = _displacements_along(answers, worst, coefficients)
    extents = (np.sqrt(weights) * along - weights * _inner(answers.displacements(means), worst)) / mass
    tails, typical = _tails(extents, levels), _typical(answers, coefficients, mass)
    return Gradients(means, variances, tails, typical, 1.0 - weights.mean(axis=0)), extents


def _means(answers: Answers, weights: Array) -> tuple[Array, Array]:
    """Weighted means of the gradients ``c ā``, and their coefficients c times the roots of the weights: one pass."""
    signals, backgrounds = answers.signals, answers.backgrounds

    def kernel(block: Array, y: Array, w: Array) -> Parts:
        projections = project_block(block, signals)
        # Samples that are not kept may be too large to square.
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients = (abs2(projections) - y + backgrounds) * projections
        coefficients[w == 0] = 0
        return Parts(sums=(adjoint_block(block, w * coefficients),), rows=(np.sqrt(w) * coefficients,))

    parts = answers.source.reduce(in_slices(kernel, signals.shape[1]), (answers.responses, weights))
    return parts.sums[0] / np.maximum(weights.sum(axis=0), TINY), parts.rows[0]


def vouched(answers: Answers, gradients: Gradients, levels: Array) -> Certificates:
    """The balls that robust means of the gradients vouch for, and the signals brought back into them."""
    signals, norms, m = answers.signals, answers.norms, answers.source.shape[0]
    displacements = answers.displacements(gradients.means)
    offsets = np.linalg.norm(displacements, axis=0)
    # A mean estimator that certifies nothing vouches for no ball; nor do answers of no length, whose gradients vanish.
    known = np.isfinite(gradients.variances) & np.any(signals, axis=0)
    unit = CERTIFICATE.constant * np.sqrt(np.where(known, gradients.variances, np.inf))
    by_chance = np.sqrt(gradients.typical * real_unknowns(signals) / m)
    room = unit * np.sqrt(levels / np.maximum(1 - levels, TINY)) + by_chance
    outside = (offsets > room) & (offsets > CERTIFICATE.rounding)
    excess = np.where(outside, 1.0 - np.minimum(room, offsets) / np.maximum(offsets, TINY), 0.0)
    asked_for = np.minimum(offsets, room) + CERTIFICATE.tails * gradients.tails + by_chance
    radii = reach(
        np.where(known, asked_for, np.inf), noise_mean=answers.noise_mean, is_complex=np.iscomplexobj(signals)
    )
    return Certificates(signals - excess * norms * displacements, radii, excess * offsets, gradients)


def _within(answers: Answers, mean: MeanResult) -> Gradients:
    """What a robust mean says of the gradients of one answer: within its weights if it vouches for them."""
    location, removed = mean.location[:, np.newaxis], np.array([mean.removed])
    if not np.isfinite(mean.top_variance):
        nothing = np.full(1, np.inf)
        return Gradients(location, nothing, nothing, nothing, removed)
    inside = weighted_gradients(answers, mean.weights[:, np.newaxis], answers.levels)
    return inside._replace(means=location, removed=removed)


def _worst_directions(answers: Answers, coefficients: Array, mass: Array, means: Array) -> tuple[Array, Array]:
    """Largest eigenvalue of the covariance of the displacements ``H⁻¹ c a / ‖x‖`` of every signal, and its vector.

    By Lanczos' method, one pass per step, with the real inner product: a displacement is a vector of real and imaginary
    parts. Points that move the mean show along the mean, so the search starts between the mean and the signal.
    """
    signals, drift = answers.signals, answers.displacements(means)
    # On the same side, so that the two do not cancel.
    vectors = _unit(_unit(signals) + np.where(_inner(signals, drift) < 0, -1.0, 1.0) * _unit(drift))
    basis: list[Array] = []
    images: list[Array] = []
    for _ in range(CERTIFICATE.depth):
        moments = _second_moments_times(answers.source, answers.displacements(vectors), coefficients) / mass
        image = answers.displacements(moments) - drift * _inner(drift, vectors)
        basis.append(vectors)
        images.append(image)
        # Twice: the first projection leaves roundings that the division by small norms would amplify.
        left = image
        for _ in range(2):
            for earlier in basis:
                left = left - earlier * _inner(earlier, left)
        new = np.linalg.norm(left, axis=0) > CERTIFICATE.rounding * np.linalg.norm(image, axis=0)
        vectors = np.where(new, _unit(left), 0.0)
    small = np.einsum("dnk,enk->kde", np.stack(basis).conj(), np.stack(images)).real
    spectra, mixtures = np.linalg.eigh((small + small.transpose(0, 2, 1)) / 2)
    values, worst = spectra[:, -1], _unit(np.einsum("dnk,kd->nk", np.stack(basis), mixtures[:, :, -1]))
    return np.maximum(values, 0.0), worst


def _displacements_along(answers: Answers, directions: Array, coefficients: Array) -> Array:
    """How far the displacement of every gradient ``c ā`` goes along the direction of its signal: one pass, shape (m, k)."""
    # H⁻¹ is symmetric for the real inner product.
    wanted = answers.displacements(directions)

    def kernel(block: Array, c: Array) -> Parts:
        return Parts(rows=((c.conj() * project_block(block, wanted)).real,))

    return answers.source.reduce(in_slices(kernel, wanted.shape[1]), (coefficients,)).rows[0]


def _tails(extents: Array, levels: Array) -> Array:
    """Sums of the share ε of largest values of every column, on the side where they are larger."""
    m = extents.shape[0]
    sums = []
    for values, level in zip(extents.T, levels, strict=True):
        count = min(max(int(np.ceil(level * m)), 1), m)
        ends = np.partition(values, (count - 1, m - count))
        sums.append(max(-ends[:count].sum(), ends[m - count :].sum()))
    return np.array(sums)


def _typical(answers: Answers, coefficients: Array, mass: Array) -> Array:
    """Variance of the displacements along a typical direction, which is one across the signal, behind standard normal rows."""
    signals, powers = answers.signals, answers.norms**2
    with np.errstate(over="ignore"):
        # Answers of next to no length are certified nothing.
        energies = abs2(coefficients).sum(axis=0) / mass / powers / powers / powers
    if not np.iscomplexobj(signals):
        return np.asarray(energies / 4)
    # Real and imaginary parts share the energy; behind real rows their curvatures differ, and the smaller one may vanish.
    least = np.maximum(least_curvature(signals), TINY**0.25) if answers.paired else np.ones(powers.size)
    return np.asarray(energies / 2 * (1 / least**2 + 1 / (2 - least) ** 2) / 2)


def _second_moments_times(source: RowSource, vectors: Array, coefficients: Array) -> Array:
    """``Σ_j g_j Re⟨g_j, v⟩`` for every column, with ``g = c ā``: one pass."""

    def kernel(block: Array, c: Array) -> Parts:
        return Parts(sums=(adjoint_block(block, c * (c.conj() * project_block(block, vectors)).real),))

    return source.reduce(in_slices(kernel, vectors.shape[1]), (coefficients,)).sums[0]


def _inner(one: Array, other: Array) -> Array:
    """``Re⟨u, v⟩`` of every column."""
    return np.asarray(np.vecdot(one.T, other.T).real)


def _unit(vectors: Array) -> Array:
    unit: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=0), TINY)
    return unit
