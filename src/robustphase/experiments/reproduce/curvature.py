"""How curved the population risks are in the balls of Lemmas 2.1 and 2.3.

Twice measured, without the closed forms that the rest of the library relies on. A search over random points of the ball takes
the eigenvalues of the Hessian and looks for the extreme one. And at the point where that lies, the curvature is the mean of a
simple function of the samples, so a large sample gives it with a confidence interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from robustphase import paper, population, simulate
from robustphase.experiments.reproduce.crew import Crew
from robustphase.experiments.reproduce.figures import chart, series
from robustphase.experiments.reproduce.intervals import Estimate, Floats, mean
from robustphase.experiments.reproduce.verdict import Verdict, judge

#: Dimension, random points of the ball, and samples at the extreme point.
DIMENSION, POINTS, SAMPLES = 4, 2000, 400_000
#: Slack of the comparison with a search that finds the extreme value itself.
ROUNDING = 1e-9


@dataclass(frozen=True)
class CurvatureClaim:
    """A bound on the eigenvalues of a Hessian over a ball around the truth, in units of ‖x*‖².

    Attributes
    ----------
    claim, part, statement : str
        As in the verdict.
    noise_mean : {"zero", "unknown"}
        Which risk.
    side : {"lower", "upper"}
        Strong convexity or smoothness.
    radius : float
        Of the ball, over ‖x*‖.
    printed, corrected : float
        The bound in the paper, and the exact one.
    erratum : str or None
        Where the correction stands, if the printed bound is false.
    """

    claim: str
    part: str
    statement: str
    noise_mean: Literal["zero", "unknown"]
    side: Literal["lower", "upper"]
    radius: float
    printed: float
    corrected: float
    erratum: str | None = None


def measure(claim: CurvatureClaim, crew: Crew, *, points: int = POINTS, samples: int = SAMPLES) -> Verdict:
    """Search the ball, then measure at the extreme point."""
    found = crew.map(_search, [(claim, points)])[0]
    at_extreme = crew.map(_from_samples, [(claim, samples)])[0]
    lower = claim.side == "lower"
    extreme = min(found) if lower else max(found)
    beyond = extreme - claim.corrected
    verdict, erratum = judge(
        printed=(at_extreme.high >= claim.printed and extreme >= claim.printed - ROUNDING)
        if lower
        else (at_extreme.low <= claim.printed and extreme <= claim.printed + ROUNDING),
        corrected=at_extreme.meets(claim.corrected, claim.corrected)
        and (beyond >= -ROUNDING if lower else beyond <= ROUNDING),
        erratum=claim.erratum,
    )
    word = "smallest" if lower else "largest"
    return Verdict(
        claim.claim,
        claim.statement,
        f"{word} eigenvalue {extreme:.4f}‖x*‖² in {points + 2} points of the ball (exactly {claim.corrected:.4f}); "
        f"{at_extreme.value:.3f}‖x*‖² from {samples} samples at the extreme one",
        f"99%: {at_extreme.interval}",
        verdict,
        erratum,
        part=claim.part,
        data={
            "printed": claim.printed,
            "corrected": claim.corrected,
            "extreme": extreme,
            "from_samples": list(at_extreme),
            "figure": _figure(claim),
        },
    )


def _search(task: tuple[CurvatureClaim, int]) -> list[float]:
    """Extreme eigenvalues at random points of the ball, and at the two ends of the line through the truth."""
    claim, points = task
    rng = np.random.default_rng(0)
    truth = np.zeros(DIMENSION)
    truth[0] = 1.0
    steps = rng.standard_normal((points, DIMENSION))
    # Half of them on the sphere, where extremes are to be expected, half spread evenly within.
    lengths = np.where(np.arange(points) % 2 == 0, 1.0, rng.random(points) ** (1 / DIMENSION))
    steps *= (lengths / np.linalg.norm(steps, axis=1))[:, np.newaxis]
    ends = np.outer((1.0, -1.0), truth)
    end = 0 if claim.side == "lower" else -1
    return [
        float(
            np.linalg.eigvalsh(population.hessian(truth + claim.radius * step, truth, noise_mean=claim.noise_mean))[end]
        )
        for step in (*ends, *steps)
    ]


def _from_samples(task: tuple[CurvatureClaim, int]) -> Estimate:
    """Curvature from samples: across the truth at the near end of the ball, or along it at the far end."""
    claim, samples = task
    truth, across = np.eye(DIMENSION)[:2]
    point, direction = (
        ((1 - claim.radius) * truth, across) if claim.side == "lower" else ((1 + claim.radius) * truth, truth)
    )
    oracle = simulate.SampleOracle(truth, contamination=0.0, attack="none", noise="gaussian", seed=0)
    A, y = oracle.draw(samples if claim.noise_mean == "zero" else 2 * samples)
    values = second_derivatives(A, y, point, direction, noise_mean=claim.noise_mean)
    return mean(values)


def second_derivatives(
    A: Floats, y: Floats, x: Floats, v: Floats, *, noise_mean: Literal["zero", "unknown"]
) -> npt.NDArray[np.float64]:
    """Second derivative of the loss of every sample (or pair), equations (3) and (9), at ``x`` along ``v``."""
    if noise_mean == "zero":
        return np.asarray((3 * (A @ x) ** 2 - y) * (A @ v) ** 2)
    b, c, upsilon = paper.pair_samples(A, y)
    first = (b @ v) * (c @ x) + (b @ x) * (c @ v)
    return np.asarray(first**2 + 2 * ((b @ x) * (c @ x) - upsilon) * (b @ v) * (c @ v))


def _figure(claim: CurvatureClaim) -> dict[str, object]:
    """The exact bound against the radius, beside the printed one."""
    radii = np.linspace(0.0, 1.5 * claim.radius, 31)
    end = 0 if claim.side == "lower" else 1
    exact = [population.curvature_range(float(r), noise_mean=claim.noise_mean)[end] for r in radii]
    return chart(
        f"{claim.claim}: {claim.part}",
        "radius of the ball / ‖x*‖",
        "eigenvalue / ‖x*‖²",
        series("extreme eigenvalue", radii, exact, style="line"),
        series("printed", [0.0, claim.radius], [claim.printed] * 2, style="line"),
        series("ball of the lemma", [claim.radius], [claim.corrected], style="points"),
    )
