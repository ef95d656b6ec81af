"""Noise laws: exact moments, the right distribution, and limits on the tail."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from robustphase.simulate import NOISES, Noise, draw_noise, lognormal, mixture, pareto, student

DRAWS = 100_000


def standardised(law):
    """The distribution function of ``law`` brought to mean 0 and standard deviation 1 by its own moments."""
    return lambda z: law.cdf(z * law.std() + law.mean())


def two_gaussians(share, ratio):
    width = np.sqrt(1 - share + share * ratio**2)
    return lambda z: (1 - share) * stats.norm.cdf(z * width) + share * stats.norm.cdf(z * width / ratio)


REFERENCES = {
    "gaussian": (NOISES["gaussian"], stats.norm.cdf),
    "student": (NOISES["student"], standardised(stats.t(4.5))),
    "student 6": (student(6), standardised(stats.t(6))),
    "laplace": (NOISES["laplace"], standardised(stats.laplace())),
    "pareto": (NOISES["pareto"], standardised(stats.lomax(4.5))),
    "pareto 8": (pareto(8), standardised(stats.lomax(8))),
    "lognormal": (NOISES["lognormal"], standardised(stats.lognorm(1.0))),
    "lognormal 0.3": (lognormal(0.3), standardised(stats.lognorm(0.3))),
    "mixture": (NOISES["mixture"], two_gaussians(0.1, 5.0)),
    "mixture 0.3 2": (mixture(0.3, 2.0), two_gaussians(0.3, 2.0)),
    "bounded": (NOISES["bounded"], standardised(stats.uniform())),
}


@pytest.mark.parametrize("case", REFERENCES)
def test_the_draws_follow_the_law_with_exactly_the_moments_asked_for(case):
    law, cdf = REFERENCES[case]
    z = np.sort((draw_noise(law, DRAWS, std=2.0, mean=-3.0, seed=5) + 3.0) / 2.0)
    steps = np.arange(DRAWS + 1) / DRAWS
    distance = max(np.abs(cdf(z) - steps[1:]).max(), np.abs(cdf(z) - steps[:-1]).max())
    # Dvoretzky-Kiefer-Wolfowitz: exceeded with probability 1e-6 at most, whatever the tail.
    assert distance <= np.sqrt(np.log(2e6) / (2 * DRAWS))


def test_the_sample_mean_and_deviation_agree_with_those_asked_for(case):
    for name in [name for name in NOISES if name != "none"]:
        with case(name):
            blocks = draw_noise(name, (100, 2000), std=2.0, mean=-3.0, seed=6)
            # Mean: Chebyshev over 2e5 draws, confidence 1 − 1e-4 whatever the tail.
            assert abs(blocks.mean() + 3.0) <= 2.0 / np.sqrt(blocks.size * 1e-4)
            # Deviation: the median over 100 blocks is within 10% unless half of the blocks are further off on one side. A block
            # of the most skewed law is so with probability 0.15; 50 of 100 have a chance below 1e-10.
            assert abs(np.median(blocks.std(axis=1)) / 2.0 - 1) < 0.1


def test_no_noise_is_the_mean_and_nothing_else():
    assert_array_equal(draw_noise("none", 5, std=7.0, mean=1.5), np.full(5, 1.5))


def test_scaling_is_exact_and_never_uses_sample_moments():
    small = draw_noise("student", 10, seed=0)
    assert_allclose(draw_noise("student", 10, std=3.0, mean=2.0, seed=0), 2.0 + 3.0 * small)
    assert_array_equal(draw_noise("student", 20, seed=0)[:10], small)


def test_only_the_seed_decides(case):
    for name in NOISES.keys() - {"none"}:
        with case(name):
            assert_array_equal(draw_noise(name, 50, seed=1), draw_noise(name, 50, seed=1))
            assert not np.array_equal(draw_noise(name, 50, seed=1), draw_noise(name, 50, seed=2))


def test_a_law_of_your_own_can_be_drawn():
    coin = Noise("coin", "Plus or minus one.", lambda rng, size: rng.choice([-1.0, 1.0], size))
    assert set(draw_noise(coin, 100, std=3.0, seed=0)) == {-3.0, 3.0}


def test_a_wrong_argument_is_named_with_its_value_and_a_remedy(case):
    for call, message in [
        (lambda: draw_noise("studnet", 5), "noise must be one of 'bounded', .*'student'.* Did you mean 'student'"),
        (lambda: draw_noise("student", 0), "size must be a positive integer, got 0"),
        (lambda: draw_noise("student", 5, std=-1.0), "std must be a finite number at least 0, got -1.0"),
        (lambda: draw_noise("student", 5, mean=np.nan), "mean must be a finite number, got nan"),
        (lambda: student(4), "df must be a finite number larger than 4, got 4"),
        (lambda: pareto(3.9), "tail must be a finite number larger than 4, got 3.9"),
        (lambda: lognormal(0), "shape must be a finite number larger than 0, got 0"),
        (lambda: mixture(1.0), r"share must be a number in \[0, 1\), got 1.0"),
    ]:
        with case(message), pytest.raises(ValueError, match=message):
            call()
