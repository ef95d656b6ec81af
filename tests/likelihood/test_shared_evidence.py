"""Evidence of groups: likelihoods under wider noise, and the mixture of good and bad groups."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from robustphase.likelihood import NoiseModel, group_evidence, row_likelihoods
from robustphase.likelihood.shared_evidence import SHARED

MODEL = NoiseModel(np.array([0.5]), np.array([0.2]), np.array([0.3]), np.array([0.1]))


def evidence(residuals, codes, count, most=0.2, model=MODEL):
    m = len(residuals)
    ones = np.ones((m, 1))
    likelihoods = row_likelihoods(residuals[:, None], 0 * ones, 0.3 * ones, ones, model)
    return group_evidence(likelihoods, np.ones(m), codes, count, most)


def test_responses_without_weight_that_no_law_expects_say_nothing():
    # In single precision, as for several signals: far out, where the density of bad responses has vanished too.
    residuals, ones = np.array([[0.1, 1e4], [0.2, 0.3]]), np.ones((2, 2))
    counted = np.array([[1.0, 0.0], [1.0, 1.0]])
    light = NoiseModel(*(np.repeat(part, 2) for part in MODEL._replace(tails=np.array([1 / 60]))))
    found, near = (
        row_likelihoods(r, 0 * ones, np.where(r > 1e3, 0.0, 0.3), counted, light)
        for r in (residuals, 0 * residuals + 0.1)
    )
    assert np.isfinite(found).all()
    assert_allclose(found[0], near[0], rtol=1e-6)


def test_the_likelihood_of_a_width_is_that_of_a_model_of_this_scale():
    residuals = np.linspace(-3, 4, 40)[:, None]
    ones = np.ones_like(residuals)
    found = row_likelihoods(residuals, 0 * ones, 0.3 * ones, ones, MODEL)
    for kind, width in enumerate(SHARED.log_widths):
        wider = MODEL._replace(scales=MODEL.scales * np.exp(width))
        expected = np.log(0.9 * wider.density(residuals) + 0.1 * 0.3)
        assert_allclose(found[:, kind], expected[:, 0], rtol=1e-10)
    for kind, share in enumerate((SHARED.stray, *SHARED.shares), start=SHARED.log_widths.size):
        expected = np.log((1 - share) * MODEL.density(residuals) + share * 0.3)
        assert_allclose(found[:, kind], expected[:, 0], rtol=1e-10)


@pytest.mark.parametrize("width", [2.5, 6.0, 1e6])
def test_wide_groups_are_bad_and_no_others(width):
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(60), 30)
    residuals = 0.5 * rng.standard_t(5, codes.size)
    bad = np.arange(60) % 10 == 0
    residuals[bad[codes]] *= width
    seen = evidence(residuals, codes, 60)
    assert (seen.weights[bad] < 0.5).all()
    assert (seen.weights[~bad] < 0.5).mean() <= 0.05
    assert seen.log_odds[bad].min() > np.quantile(seen.log_odds[~bad], 0.95)


def test_groups_that_are_alike_are_all_good():
    """Of 40 draws from the model itself, at most one may find groups: Schwarz's criterion errs less than once in sixty here."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        codes = np.repeat(np.arange(60), 30)
        residuals = 0.5 * rng.standard_t(5, codes.size)
        residuals[residuals > 0] *= np.exp(0.3)
        found += evidence(residuals, codes, 60).found
    assert found <= 1


def test_a_good_group_may_have_some_bad_responses():
    """Of sixty groups six are wide, one has a majority of bad responses and one has three of forty; ten draws."""
    good, others = 0, 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = np.repeat(np.arange(60), 40)
        residuals = 0.5 * rng.standard_t(5, codes.size)
        residuals[codes < 6] *= 4.0
        residuals[np.flatnonzero(codes == 50)[:3]] = [4.0, -4.0, 4.0]
        residuals[np.flatnonzero(codes == 51)[:28]] = rng.uniform(-6, 6, 28)
        seen = evidence(residuals, codes, 60, model=MODEL._replace(mixing=np.array([0.02])))
        flagged = seen.weights < 0.5
        assert flagged[[*range(6), 51]].all()
        good += not flagged[50]
        others += np.count_nonzero(flagged) - 7 - flagged[50]
    assert good >= 7
    # Of 520 good groups; without strayed ones it were 24, and five of the ten.
    assert others <= 10


def test_weights_rank_groups_even_where_none_is_bad():
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(60), 30)
    widths = np.exp(0.2 * rng.standard_normal(60))
    seen = evidence(0.5 * widths[codes] * rng.standard_t(5, codes.size), codes, 60)
    assert not seen.found
    assert (seen.weights > 0.5).all()
    assert np.unique(seen.weights).size > 50
    assert roc_auc_score(widths > np.quantile(widths, 0.9), -seen.weights) > 0.8


def test_weights_of_large_groups_rank_them_by_width():
    """Widths between two of those that are compared, and many samples: no evidence is so sure that ranks are lost."""
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(40), 3000)
    widths = np.where(np.arange(40) < 4, 2.0, np.exp(0.05 * rng.standard_normal(40)))
    widths[4:7] = 1.15
    seen = evidence(0.5 * widths[codes] * rng.standard_t(5, codes.size), codes, 40)
    assert_array_equal(np.flatnonzero(seen.weights < 0.5), np.arange(4))
    assert roc_auc_score(np.arange(40) < 7, -seen.weights) > 0.97


def test_the_order_of_samples_and_the_names_of_groups_do_not_matter():
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(30), 20)
    residuals = 0.5 * rng.standard_t(5, codes.size) * np.where(codes < 4, 4.0, 1.0)
    order, names = rng.permutation(codes.size), rng.permutation(30)
    first, second = evidence(residuals, codes, 30), evidence(residuals[order], names[codes][order], 30)
    assert_allclose(second.weights[names], first.weights, atol=1e-9)


def test_groups_of_one_sample_share_nothing():
    assert evidence(np.array([0.1, 50.0, 0.2]), np.arange(3), 3) is None
