"""Theorems 3.1, 3.2, B.1 and B.2: how often the starts of Procedures 1 and 3 lie in their balls, and what that takes.

The theorems say "there are constants C₁, C₂ such that …". The experiments name constants and check: with the sample size and
the contamination that they give, in at least a share 1 − δ of runs the start lies in the ball. The conditions are those of
the theorems as corrected in docs/errata.md (A6: "1 +" is missing; A12: pairing doubles ε). Every seed meets another
adversary; the noise is Student's t with 4.5 degrees of freedom, whose fourth moment is 15σ⁴.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from robustphase import paper, simulate
from robustphase.experiments.parallel import Pool
from robustphase.experiments.reproduce.stats import SLACK, error_curve, exponent_of, growth, share
from robustphase.experiments.reproduce.verdict import Experiment, Verdict, chart, estimates, judge, series
from robustphase.population import distance

#: Noise level over ‖x*‖², its fourth moment over σ⁴, and the noise mean of the unknown-mean theorems over ‖x*‖².
SIGMA, KURTOSIS, BACKGROUND = 0.5, 15.0, 3.0
#: Confidence parameter.
DELTA = 0.05
#: What may attack: one per seed, see :func:`attack_of`.
ATTACKS = ("none", *simulate.ADVERSARIES)
#: First sample size over n when looking for the size that is needed.
FIRST = 50


@dataclass(frozen=True)
class StartClaim:
    """One theorem about a start."""

    claim: str  # Its name
    configuration: Literal["mean", "covariance"]  # Of the procedure
    paired: bool  # Procedure 3 (unknown noise mean) and not 1
    ball: float  # Radius over ‖x*‖
    #: Constants of the contamination and of the sample size.
    C1: float
    C2: float

    def contamination(self, n: int, sigma: float = SIGMA) -> float:
        """ε of the samples, by the corrected condition."""
        margin = (1 + sigma**2) * n if self.configuration == "mean" else 1 + KURTOSIS * sigma**4
        return self.C1 / margin / (2 if self.paired else 1)

    def samples(self, n: int, sigma: float = SIGMA) -> int:
        """Number of samples, by the corrected condition; of a paired procedure twice m₀."""
        factor = 1 + sigma**2 if self.configuration == "mean" else 1 + KURTOSIS * sigma**4
        return math.ceil(self.C2 * factor * self.order(n)) * (2 if self.paired else 1)

    def order(self, n: float) -> float:
        """How the sample size of the theorem depends on the dimension."""
        if self.configuration == "mean":
            return max(n**2 * math.log(n), n * math.log(n / DELTA))
        return max(n, math.log(1 / DELTA))


class StartTask(NamedTuple):
    """One world and what is to be run in it."""

    claim: StartClaim
    n: int
    m: int
    contamination: float
    sigma: float
    seed: int


class Start(NamedTuple):
    """How far a start is from the truth, and who attacked."""

    distance: float
    attack: str


def attack_of(seed: int) -> str:
    """The adversary of a seed: all of them in turn, in strides, so that a few seeds meet all groups of adversaries."""
    return ATTACKS[17 * seed % len(ATTACKS)]


def run_start(task: StartTask) -> Start:
    """One start, in a world whose adversary depends on the seed."""
    claim = task.claim
    attack = attack_of(task.seed)
    world = simulate.make_world(
        task.n,
        task.m,
        contamination=task.contamination,
        attack=attack,
        noise_std=task.sigma,
        noise_mean=BACKGROUND if claim.paired else 0.0,
        seed=1000 * task.n + task.seed,
    )
    procedure = paper.procedure_3 if claim.paired else paper.procedure_1
    x0 = procedure(world.A, world.y, contamination=task.contamination, delta=DELTA, configuration=claim.configuration)
    return Start(distance(x0, world.truth, relative=True), attack)


def in_the_ball(claim: StartClaim, pool: Pool, *, dimensions: Sequence[int], seeds: int) -> Verdict:
    """Share of the starts inside the ball at the theorem's sample size and contamination, for every dimension."""
    shares, quantiles, texts, missed = [], [], [], Counter[str]()
    for n in dimensions:
        m, level = claim.samples(n), claim.contamination(n)
        starts = pool.map(run_start, [StartTask(claim, n, m, level, SIGMA, seed) for seed in range(seeds)])
        far = [start for start in starts if start.distance > claim.ball]
        shares.append(share(seeds - len(far), seeds))
        quantiles.append(np.quantile([start.distance for start in starts], (0.05, 0.5, 0.95)))
        texts.append(f"n={n} (m={m}, ε={level:.2g}): {shares[-1].value:.0%}")
        missed.update(start.attack for start in far)
        pool.say(f"{claim.claim}: {texts[-1]} of {seeds} starts in the ball")
    verdict, _ = judge(all(inside.value >= 1 - DELTA for inside in shares))
    order, tolerated = ("n² log n", "1/n") if claim.configuration == "mean" else ("n", "1")
    low, middle, high = np.transpose(quantiles)
    return Verdict(
        claim.claim,
        f"With order {order} samples and contamination of order {tolerated}, the start of Procedure "
        f"{3 if claim.paired else 1} ({claim.configuration} configuration) is within ‖x*‖/{round(1 / claim.ball)} of the truth "
        f"with probability 1 − δ (here C₁={claim.C1:g}, C₂={claim.C2:g}, δ={DELTA:g}).",
        f"inside, of {seeds} seeds: {'; '.join(texts)}" + (f"; missed under {', '.join(missed)}" if missed else ""),
        "99%, Clopper–Pearson: " + ", ".join(inside.interval for inside in shares),
        verdict,
        part="in the ball",
        data={
            "dimensions": list(dimensions),
            "samples": [claim.samples(n) for n in dimensions],
            "contamination": [claim.contamination(n) for n in dimensions],
            "shares": [list(inside) for inside in shares],
            "missed": dict(missed),
            "figure": chart(
                f"{claim.claim}: distance of the start",
                "n",
                "distance / ‖x*‖",
                series("median, 5% to 95%", dimensions, middle, low=low, high=high),
                series("ball", dimensions, [claim.ball] * len(dimensions), style="line"),
                log_x=True,
            ),
        },
    )


def start_error(claim: StartClaim, size: tuple[int, int, int]) -> float:
    """Distance of a start at the theorem's contamination and any sample size."""
    n, m, seed = size
    return run_start(StartTask(claim, n, m, claim.contamination(n), SIGMA, seed)).distance


def needed_samples(
    claim: StartClaim,
    pool: Pool,
    *,
    dimensions: Sequence[int],
    seeds: int,
    proof: Callable[[float], float] | None = None,
) -> Verdict:
    """How the sample size grows that nine of ten starts need, beside the theorem's order and what the proof bounds."""
    error = partial(start_error, claim)
    curves = [error_curve(error, n, FIRST * n, claim.ball, seeds, pool) for n in dimensions]
    found = growth(curves, claim.ball)
    promised = exponent_of(claim.order, dimensions)
    verdict, _ = judge(found.exponent.low <= promised + SLACK)
    order = "n² log n" if claim.configuration == "mean" else "n"
    scale = found.needed[0].value / claim.order(dimensions[0])
    lines = [
        estimates("needed by 90% of the starts", dimensions, found.needed),
        series(f"order {order}", dimensions, [scale * claim.order(n) for n in dimensions], style="line"),
    ]
    remark = ""
    if proof is not None:
        tail = exponent_of(proof, (100, 400))
        remark = (
            f"; the quantity that the proof bounds has exponent {exponent_of(proof, dimensions):.2f} over these n, and "
            f"{tail:.2f} from n=100 to 400"
        )
        factor = found.needed[0].value / proof(dimensions[0])
        lines.append(series("what the proof bounds", dimensions, [factor * proof(n) for n in dimensions], style="line"))
    sizes = ", ".join(f"n={n}: {size.value:.0f}" for n, size in zip(dimensions, found.needed, strict=True))
    return Verdict(
        claim.claim,
        f"The samples that Procedure {3 if claim.paired else 1} ({claim.configuration} configuration) needs grow at most like "
        f"{order} (exponent {promised:.2f} over these n).",
        f"90% of the starts need {sizes}; exponent {found.exponent}{remark}",
        f"99%, bootstrap: {found.exponent.interval}",
        verdict,
        part="samples needed",
        data={
            "dimensions": list(dimensions),
            "needed": [list(size) for size in found.needed],
            "exponent": list(found.exponent),
            "promised_exponent": promised,
            "figure": chart(
                f"{claim.claim}: samples that the start needs", "n", "samples", *lines, log_x=True, log_y=True
            ),
        },
    )


def proof_variance(n: float, sigma: float = SIGMA) -> float:
    """``m E‖Y − EY‖²`` in Frobenius norm for clean samples and plain means: what the proof of Theorem 3.1 bounds.

    It adds up the errors of all columns, ``E[y²‖a‖⁴] − ‖EY‖²``, which grows like n². The eigenvector only feels the operator
    norm of ``Y − EY``, which is smaller by a factor of order √n.
    """
    return 3 * (n + 4) * (n + 6) + sigma**2 * n * (n + 2) - (n + 8)


THEOREM_3_1 = StartClaim("Theorem 3.1", "mean", paired=False, ball=1 / 9, C1=0.02, C2=100)
THEOREM_3_2 = StartClaim("Theorem 3.2", "covariance", paired=False, ball=1 / 9, C1=0.004, C2=2000)
THEOREM_B1 = StartClaim("Theorem B.1", "mean", paired=True, ball=1 / 6, C1=0.02, C2=100)
THEOREM_B2 = StartClaim("Theorem B.2", "covariance", paired=True, ball=1 / 6, C1=0.002, C2=4000)
#: Dimensions in which starts are counted, in the full and in the quick version.
IN_THE_BALL = {
    THEOREM_3_1: ((5, 10, 20), (5, 10)),
    THEOREM_3_2: ((5, 10, 20), (5, 10, 20)),
    THEOREM_B1: ((5, 10, 20), (5, 10)),
    THEOREM_B2: ((5, 10, 20), (5, 10)),
}
#: Dimensions and seeds with which the needed sample size is found; of paired samples the quick version has none.
NEEDED = {
    THEOREM_3_1: (((5, 10, 20), 50), ((5, 10), 15)),
    THEOREM_3_2: (((5, 10, 20, 40), 50), ((5, 10, 20), 10)),
    THEOREM_B1: (((5, 10, 20), 50),) * 2,
    THEOREM_B2: (((5, 10, 20, 40), 50),) * 2,
}


def _ball(claim: StartClaim, pool: Pool, quick: bool) -> Verdict:
    return in_the_ball(claim, pool, dimensions=IN_THE_BALL[claim][quick], seeds=20 if quick else 100)


def _needed(claim: StartClaim, pool: Pool, quick: bool) -> Verdict:
    dimensions, seeds = NEEDED[claim][quick]
    proof = proof_variance if claim is THEOREM_3_1 else None
    return needed_samples(claim, pool, dimensions=dimensions, seeds=seeds, proof=proof)


EXPERIMENTS = tuple(
    experiment
    for claim in (THEOREM_3_1, THEOREM_3_2, THEOREM_B1, THEOREM_B2)
    for experiment in (
        Experiment(claim.claim, "in the ball", partial(_ball, claim)),
        Experiment(claim.claim, "samples needed", partial(_needed, claim), in_quick=not claim.paired),
    )
)
