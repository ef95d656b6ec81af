"""Theorem 3.1: the start of Procedure 1 from robust means of the columns of y a aᵀ."""

from __future__ import annotations

import math
import time

import numpy as np

from robustphase import paper, simulate
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.experiment import Experiment
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.growth import exponent_of
from robustphase.experiments.reproduce.intervals import Estimate, share, slope
from robustphase.experiments.reproduce.starts import (
    DELTA,
    SIGMA,
    StartClaim,
    StartTask,
    in_the_ball,
    needed_samples,
    run_start,
)
from robustphase.experiments.reproduce.verdict import Verdict, judge

CLAIM = StartClaim("Theorem 3.1", "mean", paired=False, ball=1 / 9, C1=0.02, C2=100)
#: Noise levels, over ‖x*‖², at which the printed sample size is tried, and the dimension.
LOW_NOISE, DIMENSION = (0.05, 0.1, 0.2), 5
#: How far a measured exponent may be from that of a closed form: means of logarithms are not logarithms of means.
NORM_SLACK = 0.1
#: How far above 1 the exponent of a nearly linear time may be.
TIME_SLACK = 0.2


def proof_variance(n: float, sigma: float = SIGMA) -> float:
    """``m E‖Y − EY‖²`` in Frobenius norm for clean samples and plain means: what the proof of Theorem 3.1 bounds.

    It adds up the errors of all columns, ``E[y²‖a‖⁴] − ‖EY‖²``, which grows like n². The eigenvector only feels the operator
    norm of ``Y − EY``, which is smaller by a factor of order √n.
    """
    return 3 * (n + 4) * (n + 6) + sigma**2 * n * (n + 2) - (n + 8)


def ball(crew: Crew, quick: bool) -> Verdict:
    """Starts in the ball."""
    return in_the_ball(CLAIM, crew, dimensions=(5, 10) if quick else (5, 10, 20), seeds=20 if quick else 100)


def needed(crew: Crew, quick: bool) -> Verdict:
    """Growth of the needed sample size."""
    return needed_samples(
        CLAIM,
        crew,
        dimensions=(5, 10) if quick else (5, 10, 20),
        seeds=15 if quick else 50,
        proof=proof_variance,
    )


def norms(crew: Crew, quick: bool) -> Verdict:
    """The error of Y in the norm of the proof and in the one that matters."""
    return measure_norms(crew, dimensions=(5, 10, 20, 40), seeds=40 if quick else 200)


def measure_norms(crew: Crew, *, dimensions: tuple[int, ...], seeds: int, samples: int = 2000) -> Verdict:
    """Growth with n of ``m‖Y − EY‖²``, in Frobenius norm (the proof) and in operator norm (the eigenvector)."""
    found = np.array([crew.map(_norms, [(n, samples, seed) for seed in range(seeds)]) for n in dimensions])
    logarithms = np.log(found * samples)
    frobenius, operator = (slope(np.log(dimensions), logarithms[:, :, which].T) for which in (0, 1))
    formula = exponent_of(proof_variance, dimensions)
    verdict, _ = judge(frobenius.meets(formula - NORM_SLACK, formula + NORM_SLACK) and operator.high < frobenius.low)
    typical = np.exp(logarithms.mean(axis=1))
    return Verdict(
        CLAIM.claim,
        "The proof bounds the error of Y in Frobenius norm, whose square grows like n²; the direction of the start only "
        "needs the operator norm, which grows more slowly.",
        f"from n={dimensions[0]} to {dimensions[-1]}, clean samples: ‖Y − EY‖² has exponent {frobenius} in Frobenius norm "
        f"(closed form: {formula:.2f}, 2 in the limit) and {operator} in operator norm",
        f"99%: {frobenius.interval} and {operator.interval}",
        verdict,
        part="norm in the proof",
        data={
            "dimensions": list(dimensions),
            "frobenius_exponent": list(frobenius),
            "operator_exponent": list(operator),
            "closed_form_exponent": formula,
            "figure": chart(
                "Theorem 3.1: error of Y, times m",
                "n",
                "m‖Y − EY‖² / ‖x*‖⁴",
                series("Frobenius norm", dimensions, typical[:, 0]),
                series(
                    "Frobenius norm, closed form", dimensions, [proof_variance(n) for n in dimensions], style="line"
                ),
                series("operator norm", dimensions, typical[:, 1]),
                log_x=True,
                log_y=True,
            ),
        },
    )


def _norms(task: tuple[int, int, int]) -> tuple[float, float]:
    """Squared Frobenius and operator norm of ``Σ y a aᵀ / m − EY`` for clean samples."""
    n, samples, seed = task
    world = simulate.make_world(n, samples, contamination=0.0, attack="none", noise_std=SIGMA, seed=seed)
    error = (world.A.T * world.y) @ world.A / samples - np.eye(n) - 2 * np.outer(world.truth, world.truth)
    return float(np.linalg.norm(error) ** 2), float(np.linalg.norm(error, 2) ** 2)


def cost(crew: Crew, quick: bool) -> Verdict:
    """Processor time of the start."""
    if quick:
        return measure_cost(crew, n=10, sizes=(5000, 10000, 20000), repeats=5)
    return measure_cost(crew, n=20, sizes=(10000, 20000, 40000, 80000), repeats=5, large=(100, 46000))


def measure_cost(
    crew: Crew, *, n: int, sizes: tuple[int, ...], repeats: int, large: tuple[int, int] | None = None
) -> Verdict:
    """Processor time of Procedure 1 against m, and once in a large problem."""
    seconds = np.array([crew.map(_seconds, [(n, m, seed) for m in sizes]) for seed in range(repeats)])
    found = slope(np.log(sizes), np.log(seconds))
    verdict, _ = judge(found.low <= 1 + TIME_SLACK)
    middle = np.median(seconds, axis=0)
    remark = "" if large is None else f"; {crew.map(_seconds, [(*large, 0)])[0]:.0f} s for n={large[0]}, m={large[1]}"
    return Verdict(
        CLAIM.claim,
        "The n robust means of Procedure 1 take time nearly linear in the number of samples (remark on the computational "
        "complexity).",
        f"exponent of m {found} (n={n}, from {middle[0]:.2g} s for m={sizes[0]} to {middle[-1]:.2g} s for m={sizes[-1]}, one "
        f"thread{remark})",
        f"99%: {found.interval}",
        verdict,
        part="time",
        data={
            "sizes": list(sizes),
            "seconds": middle.tolist(),
            "exponent": list(found),
            "figure": chart(
                "Theorem 3.1: processor time of Procedure 1",
                "m",
                "seconds",
                series(f"n = {n}", sizes, middle),
                series("slope 1", sizes, middle[0] * np.array(sizes) / sizes[0], style="line"),
                log_x=True,
                log_y=True,
            ),
        },
    )


def _seconds(task: tuple[int, int, int]) -> float:
    n, m, seed = task
    level = CLAIM.contamination(n)
    world = simulate.make_world(n, m, contamination=level, attack="decoy", noise_std=SIGMA, seed=seed)
    began = time.process_time()
    paper.procedure_1(world.A, world.y, contamination=level, delta=DELTA)
    return time.process_time() - began


def printed_samples(claim: StartClaim, n: int, sigma: float) -> int:
    """The sample size as printed, without "1 +"; at least n, or there is nothing to compute."""
    return max(n, math.ceil(claim.C2 * claim.order(n) * sigma**2))


def low_noise(crew: Crew, quick: bool) -> Verdict:
    """The printed sample size at low noise, without any contamination."""
    return measure_low_noise(CLAIM, crew, seeds=20 if quick else 100)


def measure_low_noise(claim: StartClaim, crew: Crew, *, seeds: int) -> Verdict:
    """Share of the starts in the ball, with the sample size as printed and as corrected."""
    n = DIMENSION
    found: dict[str, list[Estimate]] = {}
    for name, size in (("printed", printed_samples), ("corrected", _corrected)):
        found[name] = []
        for sigma in LOW_NOISE:
            tasks = [StartTask(claim, n, size(claim, n, sigma), 0.0, sigma, seed) for seed in range(seeds)]
            starts = crew.map(run_start, tasks)
            found[name].append(share(sum(start.distance <= claim.ball for start in starts), seeds))
    verdict, erratum = judge(
        printed=all(inside.high >= 1 - DELTA for inside in found["printed"]),
        corrected=all(inside.value >= 1 - DELTA for inside in found["corrected"]),
        erratum="A6",
    )
    texts = [
        f"σ={sigma:g}: {old.value:.0%} with {printed_samples(claim, n, sigma)} samples, {new.value:.0%} with "
        f"{_corrected(claim, n, sigma)}"
        for sigma, old, new in zip(LOW_NOISE, found["printed"], found["corrected"], strict=True)
    ]
    return Verdict(
        claim.claim,
        f"m₀ ≥ C₂ max{{n² log n, n log(n/δ)}} σ²/‖x*‖⁴ samples are enough, also where σ is small (n={n}, C₂={claim.C2:g}).",
        f"starts in the ball without contamination, printed and corrected size (1 + σ²/‖x*‖⁴): {'; '.join(texts)}",
        "99%, Clopper–Pearson, printed size: " + ", ".join(inside.interval for inside in found["printed"]),
        verdict,
        erratum,
        part="low noise",
        data={
            "sigma": list(LOW_NOISE),
            **{name: [list(inside) for inside in shares] for name, shares in found.items()},
            "figure": chart(
                f"{claim.claim}: sample size at low noise",
                "σ / ‖x*‖²",
                "share of starts in the ball",
                *(
                    series(
                        f"{name} size",
                        LOW_NOISE,
                        [inside.value for inside in shares],
                        low=[inside.low for inside in shares],
                        high=[inside.high for inside in shares],
                    )
                    for name, shares in found.items()
                ),
            ),
        },
    )


def _corrected(claim: StartClaim, n: int, sigma: float) -> int:
    return claim.samples(n, sigma)


EXPERIMENTS = tuple(
    Experiment(CLAIM.claim, part, run)
    for part, run in (
        ("in the ball", ball),
        ("samples needed", needed),
        ("norm in the proof", norms),
        ("low noise", low_noise),
        ("time", cost),
    )
)
