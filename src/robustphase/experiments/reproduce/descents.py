"""Theorems 3.3 and B.3: the error of Algorithms 2 and 4 against T, m, σ and ε.

The theorems bound the error by a sum,

    C₃ exp(−c T) + C₃ σ/‖x*‖² (√(n log n/m) + √(log(1/δ)/m) + √ε),

so each law is measured where its term is the largest: against T with hardly any noise; against m without contamination and
after enough steps; against σ and ε under an adversary that makes the last term as large as it can be
(:mod:`robustphase.experiments.reproduce.attacks`). Every run starts at the edge of the theorem's ball, draws a fresh batch
from the oracle in each step, and takes the algorithm as printed, with the corrected step where the printed one is wrong.
Slopes are means over seeds of least-squares slopes of logarithms. Where the theorem is only an upper bound, the lower bound
comes from elsewhere: no method has an error below order σ/√m, nor one below order σε against every adversary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from robustphase import paper, simulate
from robustphase.experiments.parallel import Pool
from robustphase.experiments.reproduce.attacks import NAMES as GRADIENT_ATTACKS
from robustphase.experiments.reproduce.attacks import adversary
from robustphase.experiments.reproduce.starts import attack_of
from robustphase.experiments.reproduce.stats import Estimate, Floats, slope
from robustphase.experiments.reproduce.verdict import Experiment, Verdict, chart, judge, series
from robustphase.population import distance

#: Confidence parameter of every step.
DELTA = 0.01
#: Noise mean of the unknown-mean theorem, over ‖x*‖².
BACKGROUND = 3.0
#: Largest factor per step in the proof of Theorem 3.3: 87/100 for exact gradients and 3/100 for their error.
FACTOR = 0.9
#: How far from the exact law an exponent may be at finite sizes, where the other terms have not quite vanished.
SLACK = 0.05


@dataclass(frozen=True)
class DescentClaim:
    """One theorem about a descent."""

    claim: str  # Its name
    algorithm: int  # 2 or 4
    ball: float  # Radius of the ball of starts, over ‖x*‖
    factor: float = FACTOR  # Bound on the factor per step
    #: Claimed ranges of the exponents in m, σ and ε.
    samples_exponent: tuple[float, float] = (-0.5, -0.5)
    noise_exponent: tuple[float, float] = (1.0, 1.0)
    contamination_exponent: tuple[float, float] = (0.5, 1.0)

    @property
    def paired(self) -> bool:
        """Whether samples are paired."""
        return self.algorithm == 4


class Descent(NamedTuple):
    """One run: dimension, samples per batch, steps, noise, contamination, adversary, mean estimator, seed."""

    claim: DescentClaim
    n: int
    m: int
    T: int
    sigma: float
    epsilon: float = 0.0
    attack: str = "none"
    mean_estimator: str = "filter"
    seed: int = 0


class Size(NamedTuple):
    """Dimension, samples per batch, and steps of a descent."""

    n: int
    m: int
    T: int


#: Where the noise, and where the contamination, makes most of the error.
NOISE_SIZE, CONTAMINATION_SIZE = Size(5, 2000, 30), Size(5, 4000, 25)


def run_descent(task: Descent) -> float:
    """Relative error of the last iterate, from a start at the edge of the ball that has the length of the truth."""
    claim = task.claim
    oracle = sampler_for(task)
    start = edge_of_ball(oracle.truth, claim.ball, task.seed)
    algorithm = paper.algorithm_4 if claim.paired else paper.algorithm_2
    x = algorithm(
        start,
        oracle.batches(task.T, task.m),
        contamination=task.epsilon,
        delta=DELTA,
        mean_estimator=task.mean_estimator,
        random_state=task.seed,
    )
    return distance(x, oracle.truth, relative=True)


def sampler_for(task: Descent) -> simulate.SampleOracle:
    """Fresh batches of a random signal."""
    return simulate.SampleOracle(
        simulate.random_signal(task.n, seed=task.seed),
        contamination=task.epsilon,
        attack=adversary(task.attack, paired=task.claim.paired),
        noise_std=task.sigma,
        noise_mean=BACKGROUND if task.claim.paired else 0.0,
        seed=task.seed,
    )


def edge_of_ball(truth: Floats, radius: float, seed: int) -> Floats:
    """A point at distance ``radius``‖x*‖ from the truth, as long as the truth and in a random direction from it."""
    across = np.random.default_rng(seed).standard_normal(truth.size)
    across -= truth * (across @ truth) / (truth @ truth)
    across *= np.linalg.norm(truth) / np.linalg.norm(across)
    # A chord of length R subtends the angle 2 arcsin(R/2).
    angle = 2 * np.arcsin(radius / 2)
    return np.asarray(np.cos(angle) * truth + np.sin(angle) * across)


def curves(pool: Pool, settings: Sequence[Descent], seeds: int) -> Floats:
    """Errors of shape (seeds, settings)."""
    tasks = [setting._replace(seed=seed) for setting in settings for seed in range(seeds)]
    return np.array(pool.map(run_descent, tasks)).reshape(len(settings), seeds).T


def against_steps(
    claim: DescentClaim,
    pool: Pool,
    *,
    steps: Sequence[int],
    seeds: int,
    n: int = 5,
    m: int = 1000,
    epsilon: float = 0.01,
) -> Verdict:
    """Error against T, with hardly any noise and with contamination."""
    sigma = 1e-9
    tasks = [
        Descent(claim, n, m, T, sigma, epsilon, attack_of(seed), seed=seed) for T in steps for seed in range(seeds)
    ]
    errors = np.array(pool.map(run_descent, tasks)).reshape(len(steps), seeds).T
    half = (len(steps) + 1) // 2
    early, late = slope(steps[:half], np.log(errors[:, :half])), slope(steps[half - 1 :], np.log(errors[:, half - 1 :]))
    first, second = (Estimate(*np.exp(part)) for part in (early, late))
    verdict, _ = judge(first.high <= claim.factor and second.high <= claim.factor)
    return Verdict(
        claim.claim,
        f"The optimisation error of Algorithm {claim.algorithm} falls geometrically with T, by a factor of {claim.factor:g} per "
        "step or better.",
        f"factor per step {first} up to T={steps[half - 1]} and {second} from there to T={steps[-1]} "
        f"(n={n}, m={m} per step, ε={epsilon:g} with another adversary for every seed, noise {sigma:g}‖x*‖², {seeds} seeds)",
        f"99%: {first.interval} and {second.interval}",
        verdict,
        part="error against T",
        data={
            "steps": list(steps),
            "factors": [list(first), list(second)],
            "figure": _figure(claim, "T", steps, {"error, all seeds": errors}, log_x=False),
        },
    )


def against_samples(
    claim: DescentClaim, pool: Pool, *, sizes: Sequence[int], seeds: int, n: int = 20, T: int = 30, sigma: float = 0.5
) -> Verdict:
    """Error against m, where the statistical term is the largest."""
    errors = curves(pool, [Descent(claim, n, m, T, sigma) for m in sizes], seeds)
    found = slope(np.log(sizes), np.log(errors))
    low, high = claim.samples_exponent
    verdict, _ = judge(found.meets(low - SLACK, high + SLACK))
    return Verdict(
        claim.claim,
        "The statistical error falls like m^(−1/2) with the samples per step.",
        f"exponent {found} for m = {sizes[0]} … {sizes[-1]} (n={n}, T={T}, σ={sigma:g}‖x*‖², no contamination, {seeds} seeds)",
        f"99%: {found.interval}",
        verdict,
        part="error against m",
        data={
            "sizes": list(sizes),
            "exponent": list(found),
            "figure": _figure(claim, "m", sizes, {"error": errors}, slope=-0.5),
        },
    )


def against_noise(
    claim: DescentClaim,
    pool: Pool,
    *,
    levels: Sequence[float],
    seeds: int,
    size: Size = NOISE_SIZE,
    epsilon: float = 0.02,
) -> Verdict:
    """Error against σ, under the mirror adversary."""
    errors = curves(pool, [Descent(claim, *size, sigma, epsilon, "mirror") for sigma in levels], seeds)
    found = slope(np.log(levels), np.log(errors))
    low, high = claim.noise_exponent
    verdict, _ = judge(found.meets(low - SLACK, high + SLACK))
    return Verdict(
        claim.claim,
        "The error is proportional to the noise level σ/‖x*‖².",
        f"exponent {found} for σ = {levels[0]:g} … {levels[-1]:g}‖x*‖² (n={size.n}, m={size.m}, T={size.T}, ε={epsilon:g}, "
        f"adversary: mirror, {seeds} seeds)",
        f"99%: {found.interval}",
        verdict,
        part="error against σ",
        data={
            "levels": list(levels),
            "exponent": list(found),
            "figure": _figure(claim, "σ / ‖x*‖²", levels, {"error": errors}, slope=1.0),
        },
    )


def against_contamination(
    claim: DescentClaim,
    pool: Pool,
    *,
    levels: Sequence[float],
    seeds: int,
    attacks: Sequence[str] = GRADIENT_ATTACKS,
    size: Size = CONTAMINATION_SIZE,
    sigma: float = 0.5,
) -> Verdict:
    """Error against ε, under adversaries that use all that second moments leave them."""
    settings = [Descent(claim, *size, sigma, epsilon, attack) for attack in attacks for epsilon in levels]
    without = curves(pool, [Descent(claim, *size, sigma)], seeds)
    errors = curves(pool, settings, seeds).reshape(seeds, len(attacks), len(levels))
    found = {attack: slope(np.log(levels), np.log(errors[:, place])) for place, attack in enumerate(attacks)}
    # The theorem is about the worst adversary. Which one that is may depend on ε: large pushes are seen and cut back.
    worst = slope(np.log(levels), np.log(errors.max(axis=1)))
    low, high = claim.contamination_exponent
    verdict, _ = judge(worst.meets(low - SLACK, high + SLACK))
    share = float(np.median(without) / np.median(errors[:, :, 0].max(axis=1)))
    return Verdict(
        claim.claim,
        "The error that the adversary causes grows at most like √ε, and no method has one below order ε: the exponent is "
        "between 1/2 and 1.",
        f"exponent {worst} for the worse of two adversaries at every ε = {levels[0]:g} … {levels[-1]:g} ("
        + ", ".join(f"{attack} alone {each}" for attack, each in found.items())
        + f"; n={size.n}, m={size.m}, T={size.T}, σ={sigma:g}‖x*‖², {seeds} seeds; without adversary the error is {share:.0%} of "
        "that at the smallest ε)",
        f"99%: {worst.interval} ({', '.join(f'{attack} {each.interval}' for attack, each in found.items())})",
        verdict,
        part="error against ε",
        data={
            "levels": list(levels),
            "exponent": list(worst),
            "exponents": {attack: list(each) for attack, each in found.items()},
            "figure": _figure(
                claim, "ε", levels, {attack: errors[:, place] for place, attack in enumerate(attacks)}, slope=0.5
            ),
        },
    )


def _figure(
    claim: DescentClaim,
    label: str,
    x: Sequence[float],
    errors: dict[str, Floats],
    *,
    slope: float | None = None,
    log_x: bool = True,
) -> dict[str, object]:
    """Medians with the range of all seeds, and a line with the claimed slope through the first median."""
    lines = [
        series(name, x, np.median(each, axis=0), low=each.min(axis=0), high=each.max(axis=0))
        for name, each in errors.items()
    ]
    if slope is not None:
        first = max(float(np.median(each[:, 0])) for each in errors.values())
        guide = first * (np.asarray(x, dtype=np.float64) / x[0]) ** slope
        lines.append(series(f"slope {slope:g}", x, guide, style="line"))
    return chart(f"{claim.claim}: error against {label}", label, "error / ‖x*‖", *lines, log_x=log_x, log_y=True)


THEOREM_3_3 = DescentClaim("Theorem 3.3", algorithm=2, ball=1 / 9)
THEOREM_B3 = DescentClaim("Theorem B.3", algorithm=4, ball=1 / 6)
#: Contaminations of the full and of the quick version; those of pairs are twice as large.
LEVELS = {
    THEOREM_3_3: ((0.005, 0.01, 0.02, 0.04, 0.08), (0.01, 0.03, 0.09)),
    THEOREM_B3: ((0.0025, 0.005, 0.01, 0.02, 0.04), (0.005, 0.015, 0.045)),
}


def _steps(claim: DescentClaim, pool: Pool, quick: bool) -> Verdict:
    return against_steps(claim, pool, steps=(4, 10, 16, 22, 28), seeds=8 if quick else 50)


def _samples(claim: DescentClaim, pool: Pool, quick: bool) -> Verdict:
    sizes = (1000, 2000, 4000, 8000) if quick else (1000, 2000, 4000, 8000, 16000)
    return against_samples(claim, pool, sizes=sizes, seeds=8 if quick else 40, T=20 if quick else 30)


def _noise(claim: DescentClaim, pool: Pool, quick: bool) -> Verdict:
    levels = (0.05, 0.125, 0.3, 0.8) if quick else (0.05, 0.1, 0.2, 0.4, 0.8)
    return against_noise(
        claim, pool, levels=levels, seeds=6 if quick else 30, size=NOISE_SIZE._replace(T=24 if quick else 30)
    )


def _contamination(claim: DescentClaim, pool: Pool, quick: bool) -> Verdict:
    levels = LEVELS[claim][quick]
    size = CONTAMINATION_SIZE._replace(T=20 if quick else 30)
    return against_contamination(claim, pool, levels=levels, seeds=6 if quick else 20, size=size)


EXPERIMENTS = tuple(
    Experiment(claim.claim, part, partial(run, claim))
    for claim in (THEOREM_3_3, THEOREM_B3)
    for part, run in (
        ("error against T", _steps),
        ("error against m", _samples),
        ("error against σ", _noise),
        ("error against ε", _contamination),
    )
)
