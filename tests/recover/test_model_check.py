"""Each check fails on the figures of its own wrong world and passes on those of a right one."""

from __future__ import annotations

import re
from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase import RobustPhaseRetrieval
from robustphase.recover.model import (
    CHECKS,
    Check,
    Design,
    Figures,
    FittedSamples,
    ModelCheck,
    Told,
    certificate_factor,
    check_model,
    checked_rows,
    measure,
    sampling_error,
)
from robustphase.recover.model.determinacy import least_curvature, variety
from robustphase.recover.model.limits import FIGURES
from robustphase.recover.model.power import huber_means
from robustphase.recover.model.residuals import crowded_counts, ordered, without_tails
from robustphase.rows import MemoryRows
from robustphase.simulate import make_world

RIGHT = Figures(
    samples=2000, kept=1800, unknowns=40, flagged=0.1, checked=1800, energy=1.0, scale=0.5, correlation=0.6, kept_correlation=0.8,
    unexplained=0.1, power=1.0, power_evidence=0.5, noise=0.5, uneven=1.0, rough=0.3, dependence=0.0,
    dependence_evidence=0.3, linear=0.0, linear_evidence=0.2, slope=0.98, slope_error=0.02, background=0.02,
    neighbours=0.01, drift=0.01, gain=-0.02, turn=0.0, turn_evidence=0.1, rival=0.05, rival_everywhere=0.02,
)  # fmt: skip
STANDARD = Design(scale=0.99, shift=0.0005, spread=0.001, kurtosis=0.0, rows=1800, curvature=0.9, variety=800.0)


def checked(figures=RIGHT, design=STANDARD, **told):
    told = {"stated": 0.1, "whitened": False, "is_complex": False, "unknown_mean": False, "no_signal": False} | told
    no_signal = told.pop("no_signal")
    return check_model(figures, design, Told(**told), no_signal=no_signal)


def test_nothing_fails_in_a_right_world():
    check = checked()
    assert not check.failed
    assert not check.severe
    assert check.message == ""
    assert certificate_factor(check, STANDARD, RIGHT) == 1.0


WRONG = [
    ("samples per unknown", {"kept": 70}, "Collect"),
    ("flagged share", {"flagged": 0.4}, "contamination="),
    ("explained responses", {"correlation": 0.02, "kept_correlation": 0.05}, "beside its own row"),
    ("expected error", {"scale": 10.0, "noise": 10.0}, "more samples"),
    ("background", {"background": 0.8, "unexplained": 0.5}, 'noise_mean="unknown"'),
    ("power of the responses", {"power": 0.5, "power_evidence": 200.0}, r"y\*\*2"),
    ("power of the responses", {"power": 0.05, "power_evidence": 200.0}, r"10\*\*"),
    ("power of the responses", {"power": 2.0, "power_evidence": 200.0}, "square root"),
    ("power of the responses", {"missing": 0.2, "correlation": 0.95, "kept_correlation": 0.9}, "saturation="),
    ("residuals along the rows", {"dependence": 0.1, "dependence_evidence": 9.0}, "complex"),
    ("residuals along the rows", {"linear": 0.1, "linear_evidence": 9.0}, "column of ones"),
    ("length of the signal", {"slope": 0.4}, "direction of the answer only"),
    ("length of the signal", {"slope": 1.8}, "direction of the answer only"),
    ("drift of the gain", {"gain": 0.6}, 'drift="auto".*shorter stretches'),
    ("neighbouring residuals", {"neighbours": 0.6}, 'drift="auto".*shorter stretches'),
    ("drift of the signal", {"turn": 0.3, "turn_evidence": 12.0}, "shorter stretches"),
    ("rival signal", {"rival": 0.4}, "flagged samples by themselves"),
    ("rival signal", {"rival": 0.13, "rival_everywhere": 0.3}, "flagged samples by themselves"),
    ("rival signal", {"entry": 9.0}, "more entries that are not zero"),
    ("rival signal", {"crowded": 0.2}, "saturation="),
    ("evenness of the noise", {"uneven": 5.0, "rough": 0.9}, "direction of the answer only"),
    ("evenness of the noise", {"growth": 3.0, "rough": 0.5}, "direction of the answer only"),
    (
        "evenness of the noise",
        {"growth": 1.4, "rough": 0.25, "flagged": 0.2, "missing_high": 0.6},
        "direction of the answer only",
    ),
    (
        "evenness of the noise",
        {"missing_high": 0.4, "follow": 4.0, "flagged_spread": 0.6},
        "direction of the answer only",
    ),
    (
        "evenness of the noise",
        {"missing_high": 0.45, "follow": 1.0, "flagged_spread": 0.6},
        "direction of the answer only",
    ),
    ("evenness of the noise", {"growth": 2.0, "rough": 0.25, "neighbours": -0.2}, "direction of the answer only"),
    (
        "rival signal",
        {"second_gain": 2.0, "at_second_gain": 0.4, "follow": 9.0, "flagged_spread": 0.1},
        "gain and the units",
    ),
    ("flagged share", {"flagged": 0.2, "missing": 0.2, "unexplained": 1e-20}, "contamination="),
    ("background", {"background": 0.25, "uneven": 1.4}, 'noise_mean="unknown"'),
    ("background", {"background": 0.25, "kept": 400, "checked": 400}, 'noise_mean="unknown"'),
    ("drift of the signal", {"turn": 0.3, "turn_evidence": 3.0, "growth": 2.5}, "shorter stretches"),
    ("expected error", {"noise": 10.0}, "more samples"),
]


def test_a_figure_out_of_bounds_is_severe_and_its_message_names_the_cure(case):
    for name, change, cure in WRONG:
        with case(name, change):
            check = checked(RIGHT._replace(**change))
            assert check.failed[0].name == name
            assert check.severe
            assert name in check.message
            assert re.search(cure, check.message)
            assert certificate_factor(check, STANDARD, RIGHT) == np.inf


def test_what_was_done_already_is_not_advised_and_what_was_ruled_out_is():
    drifts = RIGHT._replace(gain=0.6)
    assert 'drift="auto"' not in checked(drifts, drifting=True).message
    uneven = RIGHT._replace(uneven=5.0)
    assert 'noise="poisson"' in checked(uneven, additive=True).message
    assert 'noise="poisson"' not in checked(uneven).message
    flagged = RIGHT._replace(flagged=0.5)
    assert "whiten=True" in checked(flagged).message
    assert "whiten=True" not in checked(flagged, whitened=True).message


def test_every_parameter_that_a_remedy_names_exists():
    names = set(RobustPhaseRetrieval().get_params()) | set(signature(RobustPhaseRetrieval.fit).parameters)
    wrong = [RIGHT._replace(**change) for _, change, _ in WRONG] + [RIGHT._replace(uneven=5.0)]
    told = [{}, {"is_complex": True}, {"stated": "auto"}, {"additive": True}, {"drifting": True}]
    remedies = [one.remedy for figures in wrong for more in told for one in checked(figures, **more).failed]
    named = {name for remedy in remedies for name in re.findall(r"\b(\w+)=", remedy)}
    assert {"contamination", "whiten", "noise_mean", "field", "drift", "noise", "groups", "saturation"} <= named
    assert named <= names


def test_what_harms_little_is_reported_and_not_severe(case):
    for name, change in [("evenness of the noise", {"uneven": 5.0}), ("drift of the gain", {"gain": 0.2})]:
        with case(name):
            check = checked(RIGHT._replace(**change))
            assert [one.name for one in check.failed] == [name]
            assert not check.severe
            assert certificate_factor(check, STANDARD, RIGHT) == 1.0


def test_neighbours_on_a_detector_may_go_together_but_neighbours_in_time_may_not():
    figures = RIGHT._replace(neighbours=0.6)
    for design, severe in ((STANDARD, True), (None, False)):
        check = next(one for one in checked(figures, design).checks if one.name == "neighbouring residuals")
        assert check.failed
        assert check.severe is severe


def test_certificates_allow_for_the_curvature_that_is_gone_with_large_predictions():
    bent = STANDARD._replace(curvature=0.5)
    gone = RIGHT._replace(missing=0.1, missing_low=0.05, missing_high=0.2)
    check = checked(gone, bent)
    assert not check.failed
    assert certificate_factor(check, bent, gone) == 2.0
    assert certificate_factor(check, bent, gone._replace(missing_high=0.08)) == 1.0
    assert certificate_factor(check, STANDARD._replace(curvature=1.2), gone) == 1.0


def test_noise_whose_growth_was_learnt_may_be_rough_by_chance():
    rough = RIGHT._replace(growth=50.0, rough=0.36, checked=600, flagged=0.0)
    assert [one.name for one in checked(rough).failed] == ["evenness of the noise"]
    assert not checked(rough._replace(efficient=0.2)).severe
    assert checked(rough._replace(efficient=0.2, rough=0.45)).severe
    assert checked(rough._replace(efficient=0.2, power=0.8, power_evidence=10.0)).severe


def test_another_value_of_an_entry_needs_less_evidence_behind_sparse_rows():
    other = RIGHT._replace(entry=5.0)
    assert not checked(other).failed
    assert [one.name for one in checked(other, STANDARD._replace(kurtosis=20.0)).failed] == ["rival signal"]


def test_many_values_are_put_in_the_order_that_they_have(case, rng):
    for scale in [1e-200, 1e-3, 1.0, 1e200]:
        with case(scale):
            values = scale * rng.standard_normal(3000)
            values[::7] = values[0]
            told = ordered(values)
            np.testing.assert_allclose(values[told.order], np.sort(values), rtol=1e-6)
            assert sorted(told.order) == list(range(values.size))
            assert told.ties
            assert not ordered(scale * np.linspace(-1.0, 2.0, 3000)).ties
            # Equal values stand side by side.
            assert np.count_nonzero(np.diff(values[told.order]) == 0) == 428


def test_nothing_is_certified_where_two_things_are_wrong_with_the_residuals():
    check = checked(RIGHT._replace(uneven=5.0, background=0.8, rough=0.1, scale=0.3))
    assert {one.name for one in check.failed} == {"evenness of the noise", "background"}
    assert not check.severe
    assert certificate_factor(check, STANDARD, RIGHT) == np.inf


def test_another_curve_needs_less_evidence_the_more_flags_tell_of_it(case):
    for signs, needed in [
        ({}, CHECKS.evidence),
        ({"follow": 6.0}, CHECKS.hint),
        ({"missing": 0.15}, CHECKS.hint),
        ({"follow": 6.0, "missing": 0.15}, CHECKS.turn_hint**2),
        # Within chance of the stated level.
        ({"missing": 0.12}, CHECKS.evidence),
    ]:
        with case(signs):
            for evidence, severe in ((0.95 * needed, False), (1.05 * needed, True)):
                check = checked(RIGHT._replace(power=2.0, power_evidence=evidence, **signs))
                assert check.severe is severe
            assert not checked(RIGHT._replace(power=1.2, power_evidence=1.05 * needed, **signs)).severe


def test_signs_of_another_curve_that_are_nearly_clear_add_up():
    # 3.4 standard deviations each.
    both = RIGHT._replace(power=2.0, follow=3.4, missing=0.1228)
    assert checked(both._replace(power_evidence=15.0)).severe
    assert not checked(both._replace(power_evidence=13.0)).severe
    assert not checked(both._replace(power_evidence=15.0, missing=0.1)).severe
    assert not checked(both._replace(power_evidence=15.0, follow=0.0)).severe


def test_few_samples_that_are_hardly_explained_must_not_be_flagged_beyond_the_stated_level():
    few = RIGHT._replace(
        samples=240, kept=200, checked=200, flagged=0.17, correlation=0.5, kept_correlation=0.9, noise=0.1
    )
    few = few._replace(scale=0.1)
    assert not checked(few._replace(missing=0.1)).severe
    assert [one.name for one in checked(few._replace(missing=0.17)).failed] == ["explained responses"]
    assert not checked(few._replace(missing=0.17), stated=0.2).severe


def test_more_must_be_explained_where_responses_are_rough():
    hardly = RIGHT._replace(correlation=0.2, kept_correlation=0.2)
    assert not checked(hardly).severe
    assert [one.name for one in checked(hardly._replace(rough=0.7)).failed] == ["explained responses"]
    assert not checked(RIGHT._replace(correlation=0.35, kept_correlation=0.35, rough=2.5)).severe


def test_a_mean_of_the_residuals_is_no_constant_where_they_are_uneven_or_have_a_direction_or_rows_show_little(case):
    for sign in [{"uneven": 0.7}, {"dependence_evidence": 2.8}, {"stretch": 3.0}]:
        with case(sign):
            shifted = RIGHT._replace(background=0.25)
            assert not checked(shifted).severe
            assert [one.name for one in checked(shifted._replace(**sign)).failed] == ["background"]
            assert not checked(RIGHT._replace(**sign)).severe


def test_a_curve_or_a_direction_without_evidence_is_chance():
    assert not checked(RIGHT._replace(power=0.5, power_evidence=5.0, dependence=0.1, dependence_evidence=2.0)).failed


def test_half_of_the_evidence_is_none(case):
    for change, stated in [
        # An adversary's samples, of some kinds only or no more than were stated; a background that is constant.
        ({"rival": 0.12, "rival_everywhere": 0.0}, 0.1),
        ({"rival": 0.115, "rival_everywhere": 0.3}, 0.1),
        ({"rival": 0.2, "rival_everywhere": 0.1}, "auto"),
        ({"background": 0.25}, 0.1),
        ({"background": 0.25, "growth": 3.0}, 0.1),
        ({"growth": 3.0, "rough": 0.2}, 0.1),
        ({"turn": 0.3, "turn_evidence": 3.0}, 0.1),
        ({"entry": 3.0}, 0.1),
        ({"missing": 0.2, "correlation": 0.95, "kept_correlation": 0.9}, 0.2),
        ({"missing": 0.2, "correlation": 0.95, "kept_correlation": 0.96}, 0.1),
        ({"missing": 0.2, "correlation": 0.85, "kept_correlation": 0.8}, 0.1),
        # A background of many samples, and one of few that the noise is too narrow or too wide for.
        ({"background": 0.25, "kept": 1600, "checked": 1600}, 0.1),
        ({"background": 0.34, "kept": 400, "checked": 400, "scale": 0.2, "efficient": 0.5}, 0.1),
        ({"background": 0.14, "kept": 400, "checked": 400}, 0.1),
        # Bad samples that follow their predictions at one gain, or not at all, or are few; noise that its neighbours do not know.
        ({"missing_high": 0.4, "follow": 4.0, "flagged_spread": 0.3}, 0.1),
        ({"missing_high": 0.35, "follow": 1.0, "flagged_spread": 0.6}, 0.1),
        ({"missing_high": 0.45, "missing_low": 0.1, "follow": 1.0, "flagged_spread": 0.6}, 0.1),
        ({"missing_high": 0.2, "follow": 4.0, "flagged_spread": 0.6}, 0.1),
        ({"growth": 2.0, "rough": 0.25, "neighbours": -0.09}, 0.1),
        ({"rough": 0.25, "neighbours": -0.2}, 0.1),
        # As many samples at another gain as were stated, and more at a gain that does no harm.
        ({"second_gain": 2.0, "at_second_gain": 0.32, "follow": 9.0}, 0.3),
        ({"second_gain": 2.0, "at_second_gain": 0.2, "follow": 9.0}, 0.05),
        ({"second_gain": 2.0, "at_second_gain": 0.3, "follow": 9.0}, "auto"),
        ({"second_gain": 1.3, "at_second_gain": 0.4, "follow": 9.0}, 0.1),
        # What was erased or clipped, which a small gain explains.
        ({"second_gain": 0.1, "at_second_gain": 0.6, "follow": -4.0}, 0.1),
        ({"second_gain": 0.2, "at_second_gain": 0.6, "follow": 7.0, "flagged_spread": 0.38}, 0.1),
        ({"flagged": 0.13, "missing": 0.13, "unexplained": 1e-20}, 0.1),
        ({"flagged": 0.17, "missing": 0.05, "unexplained": 1e-20}, 0.1),
        # A tenth of dead pixels; large responses that an attack took, among even noise.
        ({"crowded": 0.1}, 0.1),
        ({"crowded": 0.2}, "auto"),
        ({"growth": 1.1, "rough": 0.25, "flagged": 0.2, "missing_high": 0.6}, 0.1),
        ({"growth": 1.4, "rough": 0.1, "flagged": 0.2, "missing_high": 0.6}, 0.1),
        ({"growth": 1.4, "rough": 0.25, "flagged": 0.2, "missing_high": 0.6}, 0.25),
    ]:
        with case(change, stated):
            assert not checked(RIGHT._replace(**change), stated=stated).severe


def test_a_length_that_chance_explains_is_no_failure():
    assert not checked(RIGHT._replace(slope=0.4, slope_error=0.1)).failed
    assert not checked(RIGHT._replace(slope=1.3, slope_error=0.001)).failed


def test_rows_that_cannot_tell_signals_apart_are_severe():
    poor = STANDARD._replace(variety=30.0)
    assert [one.name for one in checked(design=poor).failed] == ["variety of the rows"]
    assert checked(design=poor).severe
    assert checked(RIGHT._replace(unknowns=80), STANDARD._replace(variety=70.0), is_complex=True).severe
    # Of few unknowns the bound says nothing.
    assert not checked(RIGHT._replace(unknowns=5), STANDARD._replace(variety=3.0)).failed


def test_roundings_of_an_exact_fit_say_nothing():
    exact = {"unexplained": 1e-20, "scale": 1e-9, "background": 0.0}
    loud = {
        "power": 0.5,
        "power_evidence": 99.0,
        "dependence": 0.2,
        "dependence_evidence": 9.0,
        "uneven": 9.0,
        "gain": 0.5,
    }
    assert not checked(RIGHT._replace(**exact, **loud)).failed


def test_rows_of_another_scale_enlarge_the_certificate_by_its_fourth_power():
    half = STANDARD._replace(scale=0.25, curvature=0.07)
    check = checked(design=half)
    assert {one.name for one in check.failed} == {"scale of the rows", "curvature"}
    assert not check.severe
    assert certificate_factor(check, half, RIGHT) == pytest.approx(1 / 0.0625)


def test_flat_directions_are_severe_and_whitening_is_suggested_where_it_helps():
    assert checked(design=STANDARD._replace(curvature=1e-4)).severe
    wide = checked(design=STANDARD._replace(spread=2.0))
    assert wide.severe
    assert "whiten=True" in wide.message
    assert "whiten=True" not in checked(design=STANDARD._replace(spread=2.0), whitened=True).message


def test_nothing_is_certified_for_rows_that_are_shifted_where_the_curvature_is_unknown():
    shifted = STANDARD._replace(shift=0.3, curvature=np.nan)
    check = checked(design=shifted)
    assert not check.severe
    assert certificate_factor(check, shifted, RIGHT) == np.inf


def test_the_error_that_noise_leaves_is_that_of_least_squares():
    assert sampling_error(RIGHT._replace(kept=40_000), STANDARD._replace(scale=1.0), False) == pytest.approx(
        0.25 * np.sqrt(40 / 40_000), rel=0.05
    )
    assert sampling_error(RIGHT._replace(kept=40), STANDARD, False) == np.inf


def test_a_check_prints_as_a_table_with_severe_failures_explained():
    check = checked(RIGHT._replace(uneven=5.0, power=0.5, power_evidence=99.0))
    lines = str(check).splitlines()
    assert len(lines) == len(check.checks) + 2
    assert sum(line.startswith("severe") for line in lines) == 1
    assert check.failed[0].name == "power of the responses"
    assert "Also failed: evenness of the noise" in check.message


def test_a_model_without_checks_holds():
    assert ModelCheck((Check("one", 0.0, 1.0, False, False),)).message == ""


def figures_at(signal, A, y, weights=None):
    m = len(y)
    ones = np.ones((m, 1))
    fit = FittedSamples(
        MemoryRows(A), y[:, np.newaxis], ones if weights is None else weights, ones, np.zeros(m, bool),
        signal[:, np.newaxis], signal[:, np.newaxis], np.zeros(1), np.array([0.5]), np.array([0.1]), False, np.array([0.1]),
    )  # fmt: skip
    (one,), design = measure(fit)
    return one, design


@pytest.fixture(params=[0, 1])
def drawn(request):
    rng = np.random.default_rng(request.param)
    A, x = rng.standard_normal((3000, 20)), rng.standard_normal(20)
    return A, x / np.linalg.norm(x), rng


def test_figures_at_the_truth_are_those_of_a_right_world(drawn):
    A, x, rng = drawn
    one, design = figures_at(x, A, (A @ x) ** 2 + 0.5 * rng.standard_normal(len(A)))
    assert one.correlation > 0.7
    assert abs(one.power - 1) < 0.2
    assert one.dependence_evidence < CHECKS.deviations
    assert abs(one.background) < 0.1
    assert design.curvature > CHECKS.curvature
    assert not checked(one, design).failed


def test_a_second_signal_shows_in_the_residuals_of_the_other_half(drawn):
    A, x, rng = drawn
    other = rng.standard_normal(20)
    other -= x * (x @ other)
    y = (A @ x) ** 2 + 0.5 * (A @ other) ** 2 / (other @ other) + 0.1 * rng.standard_normal(len(A))
    one, _ = figures_at(x, A, y)
    assert one.dependence > 0.3
    assert one.dependence_evidence > 10


def test_the_power_of_the_responses_is_found(drawn):
    A, x, rng = drawn
    one, _ = figures_at(x, A, np.abs(A @ x) + 0.05 * rng.standard_normal(len(A)))
    assert one.power == pytest.approx(0.5, rel=0.2)
    assert one.power_evidence > CHECKS.evidence


def test_means_of_bins_are_as_accurate_as_plain_ones_and_outliers_decide_as_little_as_for_medians():
    rows = np.random.default_rng(5).standard_normal((2000, 45))
    means, spreads = huber_means(rows)
    # Relative standard errors of such variances are a thirtieth.
    assert means.std() / rows.mean(axis=1).std() < 1.08 < np.median(rows, axis=1).std() / rows.mean(axis=1).std()
    assert np.median(spreads) / np.sqrt(45) == pytest.approx(means.std(), rel=0.1)
    shifted = rows.copy()
    shifted[:, :4] = 1e6
    there = huber_means(shifted)[0]
    assert 0 < np.median(there - means) < 0.3
    assert_allclose(huber_means(-2 * shifted + 3)[0], 3 - 2 * there, rtol=1e-9, atol=1e-9)
    assert_allclose(huber_means(np.ones((3, 8)))[0], 1.0)


def test_counts_are_crowded_where_one_value_has_more_of_them_than_their_law_explains():
    rng = np.random.default_rng(3)
    means = rng.standard_normal(3000) ** 2
    counts = rng.poisson(means).astype(float)
    everything = np.ones(counts.size, bool)
    clicks, erased = np.minimum(counts, 1.0), np.where(rng.random(counts.size) < 0.1, 0.0, counts)
    assert crowded_counts(ordered(counts), everything, means) == 0
    above = float(np.mean(counts > 1))
    assert crowded_counts(ordered(clicks), everything, means) == pytest.approx(above, abs=0.03)
    lost = float(np.mean((erased == 0) & (counts > 0)))
    assert crowded_counts(ordered(erased), everything, means) == pytest.approx(lost, abs=0.03)


def test_equal_responses_count_as_crowded_where_rows_and_rounding_do_not_explain_them(drawn):
    A, x, rng = drawn
    y = (A @ x) ** 2 + 0.1 * rng.standard_normal(len(A))
    assert figures_at(x, A, y)[0].crowded == 0
    assert figures_at(x, A, np.round(y, 2))[0].crowded == 0
    clipped = np.minimum(y, np.quantile(y, 0.7))
    assert figures_at(x, A, clipped)[0].crowded == pytest.approx(0.3, abs=0.001)
    assert figures_at(x, A, np.round(clipped, 2))[0].crowded == pytest.approx(0.3, abs=0.01)
    # Rows of zeros have equal responses, and should.
    dark = rng.random(len(A)) < 0.3
    assert figures_at(x, np.where(dark[:, np.newaxis], 0.0, A), np.where(dark, 0.0, y))[0].crowded == 0


def test_what_is_missing_is_counted_by_thirds_of_the_predictions(drawn):
    A, x, rng = drawn
    predictions = (A @ x) ** 2
    bad = predictions > np.quantile(predictions, 0.8)
    one, _ = figures_at(x, A, predictions + 0.1 * rng.standard_normal(len(A)), 1.0 - bad[:, np.newaxis])
    assert one.missing == pytest.approx(0.2, abs=0.01)
    assert one.missing_low == 0
    assert one.missing_high == pytest.approx(0.6, abs=0.01)


def test_the_design_is_measured(drawn):
    A, x, _ = drawn
    y = (A @ x) ** 2
    assert figures_at(x, 0.5 * A, y)[1].scale == pytest.approx(0.25, rel=0.1)
    assert figures_at(x, A + 0.5, y)[1].shift == pytest.approx(0.2, rel=0.2)
    assert figures_at(x, np.sign(A), y)[1].kurtosis == pytest.approx(-2, abs=0.2)
    twice = A.copy()
    twice[:, 1] = twice[:, 0]
    assert figures_at(x, twice, y)[1].curvature < 1e-6
    assert figures_at(x, A * np.geomspace(0.05, 1, 20), y)[1].spread > 0.5


def test_the_curvature_of_a_complex_signal_behind_real_rows_is_held_against_its_own_population(case):
    for weaker in [1.0, 0.5]:
        for n in [20, 60]:
            with case(weaker, n):
                rng = np.random.default_rng(n)
                A = rng.standard_normal((50 * n, n))
                parts = np.linalg.qr(rng.standard_normal((n, 2)))[0]
                x = (parts[:, 0] + 1j * weaker * parts[:, 1]) / np.hypot(1, weaker)
                one, design = figures_at(x, A, np.abs(A @ x) ** 2 + 0.3 * rng.standard_normal(len(A)))
                assert 0.7 < design.curvature < 1.6
                assert not checked(one, design, is_complex=True).failed
                twice = A.copy()
                twice[:, 1] = twice[:, 0]
                assert figures_at(x, twice, np.abs(twice @ x) ** 2)[1].curvature < CHECKS.curvature


@pytest.mark.parametrize("n", [16, 60])
def test_a_reference_beam_shows_as_residuals_that_are_linear_in_the_rows(n):
    rng = np.random.default_rng(n)
    A, x = rng.standard_normal((40 * n, n)), rng.standard_normal(n)
    x /= np.linalg.norm(x)
    noise = 0.5 * rng.standard_normal(len(A))
    right, _ = figures_at(x, A, (A @ x) ** 2 + noise)
    assert right.linear_evidence < CHECKS.deviations
    one, _ = figures_at(x, A, (A @ x + 0.5) ** 2 - 0.25 + noise)
    # One of the residuals' 0.25 + 1 parts of variance is noise, the other linear; clipping takes some of both.
    assert one.linear == pytest.approx(1 / 1.25, abs=0.1)
    assert one.linear_evidence > CHECKS.deviations


def expected_error(**changes):
    few = RIGHT._replace(kept=400, samples=440, checked=400, scale=0.8, noise=1.0, **changes)
    return next(one.figure for one in checked(few).checks if one.name == "expected error")


def test_clearly_skewed_noise_is_expected_to_leave_the_error_of_its_law():
    plain = expected_error(law=0.5)
    assert expected_error(law=0.5, skew=3.0) < 0.9 * plain
    assert expected_error(law=0.5, skew=1 / 3) == expected_error(law=0.5, skew=3.0)


def test_a_skew_of_chance_or_of_noise_that_grows_changes_nothing():
    plain = expected_error()
    assert expected_error(law=0.5, skew=1.2) == plain
    assert expected_error(law=0.5, skew=3.0, growth=1.3) == plain
    assert expected_error(law=2.0, skew=3.0) == plain


def test_the_noise_that_the_gradient_meets_is_expected_and_the_larger_one_certified():
    wide = RIGHT._replace(kept=400, samples=440, checked=400, scale=0.8, noise=0.7)
    even = wide._replace(scale=0.7)
    figures = [
        next(one.figure for one in checked(some).checks if one.name == "expected error") for some in (wide, even)
    ]
    assert figures[0] == figures[1]
    assert sampling_error(wide, STANDARD, False) > sampling_error(even, STANDARD, False)
    # Behind rows that are not centred it is the larger one as well.
    grey = STANDARD._replace(shift=0.1)
    figures = [
        next(one.figure for one in checked(some, grey).checks if one.name == "expected error") for some in (wide, even)
    ]
    assert figures[0] > figures[1]


def test_variety_is_the_dimension_of_the_lifted_rows():
    n, rng, every = 24, np.random.default_rng(0), np.arange(3000)
    real = rng.standard_normal((3000, n))
    both = real + 1j * rng.standard_normal((3000, n))
    assert variety(real, every, rng) == pytest.approx(n**2 / 2, rel=0.3)
    assert variety(both, every, rng) == pytest.approx(n**2, rel=0.3)
    assert variety(7 * both, every, rng) == pytest.approx(n**2, rel=0.3)
    fourier = np.exp(-2j * np.pi * np.arange(3000)[:, np.newaxis] * np.arange(n) / 3000)
    assert variety(fourier, every, rng) < 2 * n
    assert variety(real, rng.integers(0, n, 3000), rng) < 1.5 * n


def test_variety_is_that_of_the_kernel_without_the_means_of_its_rows():
    rows, rng = np.random.default_rng(2).standard_normal((60, 12)), np.random.default_rng(0)
    kernel = (rows @ rows.T) ** 2
    own, apart = np.trace(kernel) / 60, ~np.eye(60, dtype=bool)
    sums = np.where(apart, kernel, 0.0).sum(axis=0)
    centred = kernel - sums[:, np.newaxis] / 58 - sums / 58 + sums.sum() / (58 * 59)
    rest = np.sum(centred[apart] ** 2) / (60 * 57)
    assert variety(rows, np.arange(60), rng) == pytest.approx(own**2 / rest)


@pytest.mark.parametrize("field", ["real", "complex"])
def test_the_least_curvature_of_many_unknowns_is_nearly_that_of_the_whole_matrix(field):
    n, rng = 80, np.random.default_rng(3)
    rows, x = rng.standard_normal((1000, n)), rng.standard_normal(n)
    if field == "complex":
        rows, x = (rows + 1j * rng.standard_normal(rows.shape)) / np.sqrt(2), x + 1j * rng.standard_normal(n)
    x /= np.linalg.norm(x)
    tangents = np.conj(rows @ x)[:, np.newaxis] * rows
    real = np.hstack((tangents.real, -tangents.imag)) if field == "complex" else tangents
    unknowns, free = real.shape[1], int(field == "complex")
    least = np.linalg.eigvalsh(real.T @ real / 1000)[free]
    expected = least / ((0.5 if free else 1.0) * (1 - np.sqrt(unknowns / 1000)) ** 3)
    found = least_curvature(rows, rows @ x, x, rng)
    # A Ritz value is never below the eigenvalue.
    assert (1 - 1e-6) * expected < found < 1.2 * expected


def test_every_third_row_tells_the_least_curvature_well_enough():
    n, rng = 40, np.random.default_rng(4)
    rows, x = rng.standard_normal((3000, n)), rng.standard_normal(n)
    x /= np.linalg.norm(x)
    assert least_curvature(rows, rows @ x, x, rng) == pytest.approx(1.0, abs=0.3)
    # Even in a column that only a part of the rows has.
    some = rows.copy()
    some[300:, 0] = 0.0
    assert least_curvature(some, some @ x, x, rng) < CHECKS.curvature


def test_huge_samples_that_are_not_kept_count_for_nothing(drawn):
    A, x, rng = drawn
    y = (A @ x) ** 2 + 0.5 * rng.standard_normal(len(A))
    weights = np.ones((len(A), 1))
    weights[:100] = 0
    bad, worse = A.copy(), y.copy()
    bad[:50], worse[50:100] = 1e150, 1e200
    plain, design = figures_at(x, A, y, weights)
    hostile, same = figures_at(x, bad, worse, weights)
    assert same.scale == design.scale
    assert hostile.dependence == pytest.approx(plain.dependence, abs=1e-9)
    assert hostile.kept_correlation == pytest.approx(plain.kept_correlation, abs=1e-9)


def test_a_slightly_wrong_curve_is_severe_only_together_with_a_background():
    curved = RIGHT._replace(power=0.9, power_evidence=50.0)
    assert [one.name for one in checked(curved).failed] == ["power of the responses"]
    assert not checked(curved).severe
    assert checked(curved._replace(background=0.5)).severe
    assert not checked(RIGHT._replace(background=0.5)).severe


def test_rows_of_another_scale_are_blamed_for_flags():
    check = checked(RIGHT._replace(flagged=0.6), STANDARD._replace(scale=1.2))
    assert check.failed[0].name == "scale of the rows"
    assert "whiten=True" in check.message


def test_the_curvature_behind_real_rows_is_that_of_a_complex_signal():
    rng = np.random.default_rng(8)
    for n in (20, 60):
        for imaginary in (1.0, 0.3):
            x = rng.standard_normal(n) + 1j * imaginary * rng.standard_normal(n)
            x /= np.linalg.norm(x)
            rows = rng.standard_normal((20 * n, n)).astype(np.float32)
            assert least_curvature(rows, rows @ x, x, rng) > CHECKS.curvature, f"{n}, {imaginary}"
        twice = rows.copy()
        twice[:, 1] = twice[:, 0]
        x = rng.standard_normal(n) + 1j * rng.standard_normal(n)
        x /= np.linalg.norm(x)
        assert least_curvature(twice, twice @ x, x, rng) < CHECKS.flat, f"{n}"
    real = np.ones(n) / np.sqrt(n) + 0j
    assert np.isnan(least_curvature(rows, rows @ real, real, rng))


def test_values_without_tails_are_told_from_those_of_every_usual_law():
    rng = np.random.default_rng(5)
    peaks = rng.choice([-1.0, 1.0], 600)
    bad = np.where(rng.random(600) < 0.03, 3.0, 0.0)
    assert without_tails(peaks + 0.2 * rng.standard_normal(600))
    assert without_tails(peaks + 0.2 * rng.standard_normal(600) + bad)
    for values in (rng.standard_normal(600), rng.laplace(size=600), rng.exponential(size=600), np.zeros(600)):
        assert not without_tails(values)
    assert not without_tails(1e-170 * peaks)


@pytest.mark.parametrize("seed", range(3))
def test_noise_with_two_peaks_raises_no_alarm(seed):
    # Medians of such noise jump from peak to peak: with them 42% of 120 fits gave an alarm.
    rng = np.random.default_rng([seed, 40, 2000])
    A, x = rng.standard_normal((2000, 40)), rng.standard_normal(40)
    x /= np.linalg.norm(x)
    y = (A @ x) ** 2 + rng.choice([-0.5, 0.5], 2000) + 0.05 * rng.standard_normal(2000)
    assert not RobustPhaseRetrieval(contamination=0.1).fit(A, y).model_check_.severe


def test_few_samples_make_errors_larger_also_behind_rows_as_they_were_given():
    def expected(**changes):
        figures = RIGHT._replace(**changes)
        return next(one.figure for one in checked(figures).checks if one.name == "expected error")

    for few in ({"kept": 1800}, {"kept": 200}):
        assert expected(stretch=3.0, **few) == pytest.approx(3 * expected(**few))


def test_flags_that_follow_their_predictions_may_be_an_adversarys_up_to_the_stated_level():
    following = RIGHT._replace(missing_high=0.5, missing_low=0.05, follow=4.0, flagged_spread=0.6)
    assert not checked(following._replace(missing=0.22), stated=0.2).severe
    assert checked(following._replace(missing=0.28), stated=0.2).severe
    assert checked(following._replace(missing=0.22), stated="auto").severe


def test_long_rows_of_many_samples_are_checked_in_part():
    for m, n in ((10**6, 1000), (10**7, 20), (20000, 500), (3000, 10)):
        rows = checked_rows(m, n, n)
        assert rows * n <= FIGURES.numbers
        assert rows >= min(m, FIGURES.rows_per_unknown * n)


def test_rows_of_a_check_are_the_same_from_a_file(tmp_path):
    world = make_world(20, 9000, contamination=0.1, attack="decoy", seed=3)
    np.save(tmp_path / "A.npy", world.A)
    here = RobustPhaseRetrieval(0.1).fit(world.A, world.y).model_check_
    there = RobustPhaseRetrieval(0.1).fit(tmp_path / "A.npy", world.y).model_check_
    for one, other in zip(here.checks, there.checks, strict=True):
        assert one.name == other.name
        assert one.figure == pytest.approx(other.figure, rel=1e-3, abs=1e-6), one.name
