"""Signals that explain the flagged samples, and single entries that explain more."""

from __future__ import annotations

import numpy as np
import pytest

import robustphase as rp
from robustphase.recover.model.rival_signal import Least, find_rival
from robustphase.recover.model.single_entries import single_entry_gain
from robustphase.recover.model.verdict import ModelWarning


def two_signals(seed, m=3000, n=30):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((m, n))
    signal, rival = (rp.simulate.random_signal(n, seed=rng) for _ in range(2))
    return rows, (rows @ signal) ** 2, (rows @ rival) ** 2, signal, rng


def sought(rows, here, there, signal, belongs, rng):
    residuals = np.where(belongs, there - here, 0.0) + 0.1 * rng.standard_normal(len(rows))
    return find_rival(rows, residuals, here, np.abs(residuals) > 0.3, signal, 0.1)


@pytest.mark.parametrize("share", [0.25, 0.4])
def test_a_mixture_of_two_signals_shows_its_share_in_every_kind_of_samples(share):
    rows, here, there, signal, rng = two_signals(1)
    found = sought(rows, here, there, signal, rng.random(len(rows)) < share, rng)
    # Of the least of five kinds of at least 300 samples each: two standard errors.
    assert found.everywhere == pytest.approx(share, abs=0.06)
    assert 0.5 * share < found.share < share


def test_a_rival_is_found_among_few_samples_wherever_the_first_start_leads():
    shares = []
    # From one start alone two of these forty rivals are missed.
    for seed in range(40):
        rows, here, there, signal, rng = two_signals(seed, m=600)
        shares.append(sought(rows, here, there, signal, rng.random(len(rows)) < 0.35, rng).share)
    assert min(shares) > 0.15


def test_a_rival_of_few_samples_per_unknown_shows_its_share_to_within_chance():
    off = []
    for seed in range(20):
        rows, here, there, signal, rng = two_signals(seed, m=600)
        belongs = rng.random(len(rows)) < 0.4
        residuals = np.where(belongs, there - here, 0.0) + 0.01 * rng.standard_normal(len(rows))
        found = find_rival(rows, residuals, here, np.abs(residuals) > 0.03, signal, 0.01)
        off.append(abs(found.everywhere - belongs.mean()))
    # The share of some 500 samples is known to 0.02; where kinds of samples disagree, which two in twenty do, the least is told.
    assert np.median(off) < 0.02
    assert np.sort(off)[-3] < 0.05


def test_an_adversary_that_takes_the_samples_that_tell_most_is_not_everywhere():
    rows, here, there, signal, rng = two_signals(2)
    gap = np.abs(there - here)
    found = sought(rows, here, there, signal, gap > np.quantile(gap, 0.75), rng)
    assert found.share == pytest.approx(0.25, abs=0.02)
    assert found.everywhere < 0.05


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_two_gains_show_the_share_of_the_second_in_every_kind_of_samples(share):
    rows, here, _, signal, rng = two_signals(6)
    found = sought(rows, here, 2 * here, signal, rng.random(len(rows)) < share, rng)
    assert found.gain == pytest.approx(2.0, abs=0.1)
    # It is told less two standard errors of some 1,300 samples.
    assert share - 0.08 < found.at_gain < share


def test_an_adversary_that_doubles_the_largest_responses_is_not_everywhere():
    rows, here, _, signal, rng = two_signals(7)
    found = sought(rows, here, 2 * here, signal, here > np.quantile(here, 0.75), rng)
    assert found.gain == pytest.approx(2.0, abs=0.1)
    assert found.at_gain < 0.1


def test_another_gain_is_looked_at_alone_where_no_more_samples_are_flagged_than_may_be_bad():
    rows, here, _, signal, rng = two_signals(8)
    residuals = np.where(rng.random(len(rows)) < 0.4, here, 0.0) + 0.1 * rng.standard_normal(len(rows))
    found = find_rival(rows, residuals, here, np.abs(residuals) > 0.3, signal, 0.1, least=Least(of_flagged=1.0))
    assert found.share == found.everywhere == 0.0
    assert found.at_gain > 0.3


def test_noise_without_another_signal_has_no_rival():
    rows, here, _, signal, rng = two_signals(3)
    residuals = 0.1 * rng.standard_t(2, len(rows))
    found = find_rival(rows, residuals, here, np.abs(residuals) > 0.3, signal, 0.1)
    assert found.share < 0.05
    assert found.everywhere < 0.05


def test_one_wrong_entry_is_found_by_the_rows_that_hold_it():
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((600, 30)) * (rng.random((600, 30)) < 0.1)
    truth = rp.simulate.random_signal(30, seed=rng)
    truth[3] = 0.4
    wrong = truth.copy()
    wrong[3] = -0.2
    responses = (rows @ truth) ** 2 + 0.005 * rng.standard_normal(600)
    assert single_entry_gain(rows, responses, rows @ wrong, wrong, 0.005) > 5
    assert single_entry_gain(rows, responses, rows @ truth, truth, 0.005) < 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_objects_in_one_measurement_are_reported_whatever_was_stated():
    rows, here, there, _, rng = two_signals(5, m=1500)
    belongs = np.arange(1500) % 5 < 2
    responses = np.where(belongs, there, here) + 0.1 * rng.standard_normal(1500)
    for stated in (0.2, "auto"):
        with pytest.warns(ModelWarning):
            model = rp.RobustPhaseRetrieval(contamination=stated).fit(rows, responses)
        assert "rival signal" in {check.name for check in model.model_check_.failed}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_gains_in_turn_are_reported_whatever_was_stated():
    rows, here, _, _, rng = two_signals(9, m=3000, n=60)
    responses = np.where(np.arange(3000) % 2, here, 0.3 * here) + 0.1 * rng.standard_normal(3000)
    for stated in (0.1, 0.3, "auto"):
        with pytest.warns(ModelWarning):
            rp.RobustPhaseRetrieval(contamination=stated).fit(rows, responses)


def test_the_conjugate_is_a_rival_also_where_flags_are_too_few_to_determine_one():
    rng = np.random.default_rng(6)
    rows = rp.simulate.gaussian_design(300, 60, field="complex", seed=rng)
    signal = rp.simulate.random_signal(60, field="complex", seed=rng)
    here, there = (np.abs(rows @ one) ** 2 for one in (signal, signal.conj()))
    residuals = np.where(rng.random(300) < 0.4, there - here, 0.0) + 0.02 * rng.standard_normal(300)
    flagged = np.abs(residuals) > 0.06
    assert flagged.sum() < 2 * 120
    assert find_rival(rows, residuals, here, flagged, signal, 0.02).share > 0.25
    # Behind real rows it is the same signal.
    assert find_rival(rows.real, residuals, here, flagged, signal, 0.02).share < 0.1
