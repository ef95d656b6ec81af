"""What the theory says about the answers: balls that hold a stationary point of the robust gradient.

At an answer the loss gradients of all samples get a robust mean g, with the variance λ along its worst direction as
certificate. Clean gradients average to within ``C sqrt(ε λ)`` of g (Proposition 2.1), and the risk is curved by at least
``2‖x‖²`` near the signal (Lemma 2.1, corrected), so the signal lies within ``‖H⁻¹g‖ + C sqrt(ε λ)/(2‖x‖²)`` of the answer. The
likelihood fit has no such guarantee of its own, so it may not leave the ball around the robust stationary point ``x − H⁻¹g``.

A contamination that was found and not told is a count of those bad samples that can be recognised one by one. Others hide in the
tails of the noise, and a ball that does not count them holds the average of everything, bad samples included. So answers are
brought back only out of the ball of the contamination that they were fitted against.

Any weights certify that take away no more than the contamination and leave a small variance, wherever they come from. So the
engine's own are tried first, for all signals in common passes: every gradient is a multiple of a row, ``g_j = c_j a_j``, so
its mean and its covariance times a vector are products of the rows with one matrix. The mean estimator runs only where these
weights do not settle the matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robustphase.constants import budget, derived, empirical, numeric
from robustphase.descend.robust_gradient import gradient_points, robust_gradient
from robustphase.population import newton_step
from robustphase.population.real_rows import least_curvature
from robustphase.problem import kept, put_columns
from robustphase.rows import OperatorRows, RowSource
from robustphase.rows.passes import abs2, adjoint_block, in_slices, project_block
from robustphase.rows.source import Array, Parts

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class CertificateOptions:
    """Constants of the certificate."""

    constant: float = empirical(
        3.0,
        "C of Proposition 2.1 beyond which an answer is brought back: clean and attacked runs stay below a third of it",
    )
    stated: float = empirical(
        2.0, "C of the radius that is stated: attacks that were searched for reach 0.6 of it, others half of that"
    )
    curvature: float = derived(2.0, "least curvature of the risk at the signal over ‖x‖² (Lemma 2.1, corrected)")
    depth: int = budget(5, "passes that look for the worst direction")
    rounding: float = numeric(1e-9, "relative displacements below it are roundings")
    shortest: float = numeric(1e-150, "signals shorter than it count as that long: its square is still a number")


CERTIFICATE = CertificateOptions()


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
        Noise means, and ε' of Proposition 2.1.
    assumed : ndarray of shape (k,)
        The same for the contamination that the answers were fitted against, which is more where it was found and not told.
    unknown_mean : bool
        Whether backgrounds were fitted.
    """

    source: RowSource
    responses: Array
    weights: Array
    signals: Array
    backgrounds: Array
    levels: Array
    assumed: Array
    unknown_mean: bool

    def only(self, columns: Array) -> Answers:
        """Some of the answers."""
        names = ("responses", "weights", "signals", "backgrounds", "levels", "assumed")
        return self._replace(**{name: getattr(self, name)[..., columns] for name in names})


class Gradients(NamedTuple):
    """Robust means of the gradients of k signals (n, k), their worst variances (k,), and the shares taken away (k,)."""

    means: Array
    top_variances: Array
    removed: Array


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
    """

    signals: Array
    radii: Array
    moved: Array
    gradients: Gradients


def certify(answers: Answers, *, mean_estimator: str = "filter", random_state: Any = None) -> Certificates:
    """Check answers against the robust gradient.

    Parameters
    ----------
    answers : Answers
        The samples and the answers.
    mean_estimator, random_state
        Which robust mean to take where the weights of the answers do not settle the matter.
    """
    keep = kept(answers.weights)
    gradients = weighted_gradients(answers, keep)
    if isinstance(answers.source, OperatorRows):
        k = answers.backgrounds.size
        return Certificates(answers.signals, np.full(k, np.nan), np.zeros(k), gradients)
    found = vouched(answers, gradients, np.maximum(answers.levels, gradients.removed))
    unsettled = (found.moved > 0) | ~keep.any(axis=0) | (mean_estimator != "filter")
    for column in np.flatnonzero(unsettled):
        one = answers.only(np.array([column]))
        points = gradient_points(
            one.source, one.responses[:, 0], one.signals[:, 0], background=float(one.backgrounds[0])
        )
        # Where the answer is outside of the ball, it takes a mean that could do without all the bad samples there may be.
        level = float((one.assumed if found.moved[column] > 0 else one.levels)[0])
        mean = robust_gradient(points, level, mean_estimator=mean_estimator, random_state=random_state)
        robust = Gradients(mean.location[:, np.newaxis], np.array([mean.top_variance]), np.array([mean.removed]))
        found = put_columns(found, vouched(one, robust, np.array([level])), np.array([column]))
    return found


def weighted_gradients(answers: Answers, keep: Array) -> Gradients:
    """Means of the gradients of the samples that are kept, and the variances along their worst directions.

    Clean gradients vary most along the signal, and points that move the mean show along the mean, so the search for the
    worst direction starts between these two.
    """
    signals, backgrounds, mass = answers.signals, answers.backgrounds, np.maximum(keep.sum(axis=0), 1)

    def mean_kernel(block: Array, y: Array, counts: Array) -> Parts:
        projections = project_block(block, signals)
        # Samples that are not kept may be too large to square.
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients = (abs2(projections) - y + backgrounds) * projections
        coefficients[~counts] = 0
        return Parts(sums=(adjoint_block(block, coefficients),), rows=(abs2(coefficients),))

    parts = answers.source.reduce(in_slices(mean_kernel, signals.shape[1]), (answers.responses, keep))
    means = parts.sums[0] / mass
    # On the same side, so that the two do not cancel.
    side = np.where(np.vecdot(signals.T, means.T).real < 0, -1.0, 1.0)
    guesses = _unit(signals) + side * _unit(means)
    variances = _worst_variances(answers.source, parts.rows[0], mass, means, guesses)
    return Gradients(means, variances, 1.0 - keep.mean(axis=0))


def vouched(answers: Answers, gradients: Gradients, levels: Array) -> Certificates:
    """The balls that robust means of the gradients vouch for, and the signals brought back into them."""
    signals, m = answers.signals, answers.responses.shape[0]
    norms = np.maximum(np.linalg.norm(signals, axis=0), CERTIFICATE.shortest)
    noise_mean: Any = "unknown" if answers.unknown_mean else "zero"
    paired = np.iscomplexobj(signals) and answers.source.dtype.kind != "c"
    displacements = np.stack(
        [
            newton_step(x, g, noise_mean=noise_mean, real_rows=paired) if np.any(x) else np.zeros_like(x)
            for x, g in zip(signals.T, gradients.means.T, strict=True)
        ],
        axis=1,
    )
    offsets = np.linalg.norm(displacements, axis=0)
    # A mean estimator that certifies nothing vouches for no ball.
    variances = np.where(np.isfinite(gradients.top_variances), np.maximum(gradients.top_variances, 0.0), np.inf)
    # The gradients of a signal of zero vanish, and the curvature with them.
    curvatures = np.maximum(CERTIFICATE.curvature * norms**2 * (least_curvature(signals) if paired else 1.0), _TINY)
    with np.errstate(over="ignore"):
        # Answers of next to no length are certified nothing.
        unit = CERTIFICATE.constant * np.sqrt(variances) / curvatures
    allowed = unit * np.sqrt(np.maximum(levels, 1.0 / m))
    room = unit * np.sqrt(np.maximum(np.maximum(levels, answers.assumed), 1.0 / m))
    outside = (offsets > room) & (offsets > CERTIFICATE.rounding * norms)
    excess = np.where(outside, 1.0 - np.minimum(room, offsets) / np.maximum(offsets, _TINY), 0.0)
    return Certificates(
        signals - excess * displacements,
        (np.minimum(offsets, room) + CERTIFICATE.stated / CERTIFICATE.constant * allowed) / norms,
        excess * offsets / norms,
        gradients,
    )


def _worst_variances(source: RowSource, squares: Array, mass: Array, means: Array, guesses: Array) -> Array:
    """Largest eigenvalue of the covariance of the gradients ``c a`` of every signal, by Lanczos' method, one pass per step."""
    basis: list[Array] = []
    images: list[Array] = []
    vectors = _unit(guesses)
    for _ in range(CERTIFICATE.depth):
        image = _second_moments_times(source, vectors, squares) / mass
        image = image - means * np.vecdot(means.T, vectors.T)
        basis.append(vectors)
        images.append(image)
        # Twice: the first projection leaves roundings that the division by small norms would amplify.
        left = image
        for _ in range(2):
            for earlier in basis:
                left = left - earlier * np.vecdot(earlier.T, left.T)
        new = np.linalg.norm(left, axis=0) > CERTIFICATE.rounding * np.linalg.norm(image, axis=0)
        vectors = np.where(new, _unit(left), 0.0)
    small = np.einsum("dnk,enk->kde", np.stack(basis).conj(), np.stack(images))
    values: Array = np.linalg.eigvalsh((small + small.conj().transpose(0, 2, 1)) / 2)[:, -1]
    return np.maximum(values, 0.0)


def _second_moments_times(source: RowSource, vectors: Array, squares: Array) -> Array:
    """``Σ_j |c_j|² a_j a_jᴴ v`` for every column: one pass."""

    def kernel(block: Array, q: Array) -> Parts:
        return Parts(sums=(adjoint_block(block, q * project_block(block, vectors)),))

    return source.reduce(in_slices(kernel, vectors.shape[1]), (squares,)).sums[0]


def _unit(vectors: Array) -> Array:
    unit: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=0), _TINY)
    return unit
