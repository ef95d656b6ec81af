"""Fits to data that break the model say so; fits to data that do not stay quiet."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from tests.effort import THOROUGH, seeds

import robustphase as rp
from robustphase.recover.model import ModelWarning

pytestmark = pytest.mark.filterwarnings("error")


def drawn(seed, n=30, m=1500, field="real"):
    rng = np.random.default_rng(seed)
    A = rp.simulate.gaussian_design(m, n, field=field, seed=rng)
    return A, rp.simulate.random_signal(n, field=field, seed=rng), rng


WRONG = {
    "shuffled": (lambda A, x, rng: (A, rng.permutation((A @ x) ** 2)), "explained responses"),
    "magnitudes": (lambda A, x, rng: (A, 10 * np.abs(A @ x)), "power of the responses"),
    "squares": (lambda A, x, rng: (A, (A @ x) ** 4), "power of the responses"),
    "decibels": (lambda A, x, rng: (A, 10 * np.log10((A @ x) ** 2 + 1e-3)), "power of the responses"),
    "second mode": (lambda A, x, rng: (A, (A @ x) ** 2 + (A @ np.roll(x, 1)) ** 2), "residuals along the rows"),
    "few samples": (lambda A, x, rng: (A[:45], (A[:45] @ x) ** 2), "samples per unknown"),
    "duplicate column": (lambda A, x, rng: _twice(A, x), "curvature"),
    "drifting gain": (lambda A, x, rng: (A, (A @ x) ** 2 * np.linspace(1, 0.1, len(A))), "drift of the gain"),
    "a gain for every row": (
        lambda A, x, rng: (A, (A @ x) ** 2 * np.exp(rng.standard_normal(len(A)))),
        "evenness of the noise",
    ),
    "reference beam": (lambda A, x, rng: (A, (A @ x + 2) ** 2), "residuals along the rows"),
    "Fourier rows": (lambda A, x, rng: _fourier(len(A), x), "variety of the rows"),
    "long rows": (lambda A, x, rng: (1.1 * A, (1.1 * A @ x) ** 2), "flagged share"),
}


def _fourier(m, x):
    A = np.exp(-2j * np.pi * np.arange(m)[:, np.newaxis] * np.arange(x.size) / m)
    return A, np.abs(A @ x) ** 2


def _twice(A, x):
    A = A.copy()
    A[:, 1] = A[:, 0]
    return A, (A @ x) ** 2


@pytest.mark.parametrize("seed", seeds(1, 2))
@pytest.mark.parametrize("world", WRONG)
def test_a_wrong_world_is_named_and_nothing_is_certified(world, seed):
    change, name = WRONG[world]
    A, x, rng = drawn(seed)
    with pytest.warns(ModelWarning, match="Likely cause"):
        # Rows that are too long would be made standard, if nobody forbade it.
        model = rp.RobustPhaseRetrieval(whiten=world != "long rows" and "auto").fit(*change(A, x, rng))
    assert not model.converged_
    assert model.certificate_ == np.inf
    assert name in [check.name for check in model.model_check_.failed if check.severe]


def test_a_complex_signal_behind_real_patterns_is_not_fitted_in_silence():
    A, _, rng = drawn(3, m=3000)
    x = rp.simulate.random_signal(30, field="complex", seed=rng)
    with pytest.warns(ModelWarning, match="complex"):
        model = rp.RobustPhaseRetrieval().fit(np.sign(A), np.abs(np.sign(A) @ x) ** 2)
    assert not model.converged_


@pytest.mark.parametrize(("design", "m", "level"), [("real_gaussian", 2000, 0.1), ("grey", 8000, 0.05)])
def test_a_complex_signal_behind_real_rows_raises_no_alarm(design, m, level):
    world = rp.simulate.make_world(20, m, contamination=level, field="complex", design=design, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rp.RobustPhaseRetrieval(level, field="complex").fit(world.A, world.y)
    assert model.converged_
    assert rp.distance(model.signal_, world.truth, relative=True) < model.certificate_ < np.inf


@pytest.mark.parametrize("attack", [0.3, 0.6])
def test_a_level_that_was_found_is_no_bound_on_bad_samples_that_hide(attack):
    hidden = rp.simulate.ParametricAttack(angle=attack, by_likelihood=-1.0).adversary
    world = rp.simulate.make_world(
        20, 1000, contamination=0.2, attack=hidden, noise="gaussian", field="complex", seed=1
    )
    model = rp.RobustPhaseRetrieval("auto").fit(world.A, world.y)
    assert model.contamination_ < 0.1
    assert rp.distance(model.signal_, world.truth, relative=True) < model.certificate_


@pytest.mark.parametrize("seed", [0, 1])
def test_a_background_is_looked_for_also_where_noise_is_uneven(seed):
    A, x, rng = drawn(seed, m=3000)
    model = rp.RobustPhaseRetrieval().fit(A, (A @ x) ** 2 * (1 + 0.3 * rng.standard_normal(len(A))) + 1)
    assert model.noise_model_.kind == "variance"
    assert "background" in [check.name for check in model.model_check_.failed]


def test_complex_signals_need_more_than_two_samples_per_unknown():
    A, x, _ = drawn(0, m=60, field="complex")
    with pytest.warns(ModelWarning, match="samples per unknown"):
        model = rp.RobustPhaseRetrieval(contamination=0.0).fit(A, np.abs(A @ x) ** 2)
    assert model.certificate_ == np.inf


RIGHT = [("none", "gaussian"), ("decoy", "student"), ("leverage", "lognormal"), ("erase", "pareto"), ("mimic", "none")]


@pytest.mark.parametrize("seed", [10 + more for more in seeds(1, 2)])
@pytest.mark.parametrize(
    ("attack", "noise", "field"),
    [
        (*world, field)
        for place, world in enumerate(RIGHT)
        # Real and complex by turns, both where there is time and where nothing is wrong.
        for field in (("real", "complex") if THOROUGH or not place else (("real", "complex")[place % 2],))
    ],
)
def test_right_worlds_raise_no_alarm(attack, noise, field, seed):
    world = rp.simulate.make_world(20, 1500, contamination=0.1, attack=attack, noise=noise, field=field, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rp.RobustPhaseRetrieval(contamination=0.1).fit(world.A, world.y)
    assert model.converged_
    assert not model.model_check_.severe
    assert rp.distance(model.signal_, world.truth, relative=True) <= model.certificate_ + 1e-9


@pytest.mark.parametrize("seed", [0, 2, 3, 5])
def test_gains_are_seen_also_where_the_roughest_samples_are_flagged(seed):
    A, x, rng = drawn(seed, m=600)
    with pytest.warns(ModelWarning, match="Likely cause"):
        rp.RobustPhaseRetrieval(contamination="auto").fit(
            A, ((A @ x) ** 2 + 0.1 * rng.standard_normal(len(A))) * rng.exponential(1.0, len(A))
        )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_detector_that_is_clipped_certifies_nothing(seed):
    A, x, rng = drawn(seed, m=600)
    y = (A @ x) ** 2 + 0.1 * rng.standard_normal(len(A))
    with pytest.warns(ModelWarning, match="saturation"):
        model = rp.RobustPhaseRetrieval().fit(A, np.minimum(y, y.mean()))
    assert model.certificate_ == np.inf


@pytest.mark.parametrize("level", ["auto", 0.3])
@pytest.mark.parametrize("curve", [lambda y: y / (1 + np.abs(y)), lambda y: np.argsort(np.argsort(y)) / 100])
def test_another_curve_is_seen_also_where_what_is_off_it_was_flagged(curve, level):
    A, x, rng = drawn(63, m=600)
    y = curve((A @ x) ** 2 + 0.1 * rng.standard_normal(len(A)))
    with pytest.warns(ModelWarning, match="power of the responses"):
        rp.RobustPhaseRetrieval(contamination=level).fit(A, y)


@pytest.mark.parametrize("attack", ["inflated_rows", "leverage_truth"])
def test_rows_that_were_blown_up_do_not_add_to_the_expected_error_of_counts(attack):
    world = rp.simulate.make_counts(25, 2500, mean_count=1.0, contamination=0.1, attack=attack, field="complex", seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rp.RobustPhaseRetrieval(contamination=0.1, field="complex").fit(world.A, world.y)
    expected = {check.name: check.figure for check in model.model_check_.checks}["expected error"]
    assert expected < 2 * rp.distance(model.signal_, world.truth, relative=True)


@pytest.mark.parametrize("scale", [0.3, 0.5])
def test_certificates_hold_for_rows_of_another_scale(scale):
    A, x, rng = drawn(4)
    y = (scale * A @ x) ** 2 + 0.3 * scale**2 * rng.standard_normal(len(A))
    with warnings.catch_warnings():
        # Screening takes many of these rows for bad ones, or gives up, and says so.
        warnings.simplefilter("ignore", UserWarning)
        model = rp.RobustPhaseRetrieval(contamination=0.2, whiten=False).fit(scale * A, y)
    assert "scale of the rows" in [check.name for check in model.model_check_.failed]
    assert rp.distance(model.signal_, x, relative=True) < model.certificate_
    standard = rp.RobustPhaseRetrieval(contamination=0.2).fit(scale * A, y)
    assert not standard.model_check_.failed
    assert rp.distance(standard.signal_, x, relative=True) < standard.certificate_ < model.certificate_


def test_a_descent_is_checked_as_well():
    A, x, rng = drawn(5)
    with pytest.warns(ModelWarning, match="beside its own row"):
        model = rp.RobustPhaseRetrieval(step="paper", polish=False).fit(A, rng.permutation((A @ x) ** 2))
    assert not model.converged_


def test_many_signals_have_a_check_each():
    A, x, rng = drawn(6)
    y = (A @ x) ** 2
    with pytest.warns(ModelWarning, match="1 of 3 signals are in doubt. Column 1 of y"):
        model = rp.RobustPhaseRetrieval().fit(A, np.stack((y, rng.permutation(y), 2 * y), axis=1))
    assert [check.severe for check in model.model_check_] == [False, True, False]
    np.testing.assert_array_equal(model.converged_, [True, False, True])
    np.testing.assert_array_equal(np.isinf(model.certificate_), [False, True, False])


def test_the_check_takes_its_rows_in_one_pass_and_an_operator_is_swept_four_times(tmp_path):
    A, x, _ = drawn(7)
    np.save(tmp_path / "A.npy", A)
    model = rp.RobustPhaseRetrieval()
    for A_, most in ((np.load(tmp_path / "A.npy", mmap_mode="r"), 1), (aslinearoperator(A), 4)):
        source = rp.rows.as_source(A_)
        model.fit(source, (A @ x) ** 2)
        assert source.passes - model.history_[-1].passes <= most


def test_warnings_of_the_model_are_warnings_of_convergence():
    assert issubclass(ModelWarning, ConvergenceWarning)


@pytest.mark.parametrize(("field", "level"), [("real", 0.2), ("complex", 0.1)])
def test_a_second_signal_with_the_stated_share_of_the_samples_is_no_alarm(field, level):
    """Tails of the noise that the second signal happens to explain are not counted as its samples."""
    for seed in seeds(1, 3):
        world = rp.simulate.make_world(
            50, 3000, contamination=level, attack="mimic", field=field, noise="student", seed=seed
        )
        model = rp.RobustPhaseRetrieval(level).fit(world.A, world.y)
        assert model.converged_
        assert rp.distance(model.signal_, world.truth, relative=True) < 0.15
