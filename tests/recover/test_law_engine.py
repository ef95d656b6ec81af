"""Which law the data show, and answers under it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.constants import varied
from robustphase.recover.law.engine import LAW_ENGINE, most_uneven
from robustphase.simulate import make_camera, make_counts, make_world
from robustphase.simulate.designs import find_design


def counted(mean, *, n=20, m=1500, field="real", bad=0.0, seed=0):
    """Counts with a tenth of dark ones, of which some were swapped and doubled."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n) + (1j * rng.standard_normal(n) if field == "complex" else 0)
    x = x * np.sqrt(mean) / np.linalg.norm(x)
    A = rng.standard_normal((m, n))
    if field == "complex":
        A = (A + 1j * rng.standard_normal((m, n))) / np.sqrt(2)
    y = rng.poisson(np.abs(A @ x) ** 2 + 0.1 * mean).astype(float)
    rows = rng.choice(m, int(bad * m), replace=False)
    y[rows] = 2 * rng.permutation(y)[: rows.size]
    return A, y, x


def expected_error(mean, n, m, field):
    """About that of maximum likelihood without dark counts: the information is 4 Σ a aᵀ, half of it for complex signals."""
    unknowns = 2 * n if field == "complex" else n
    return np.sqrt(unknowns * (2 if field == "complex" else 1) / (4 * m * mean))


@pytest.mark.parametrize("field", ["real", "complex"])
@pytest.mark.parametrize("mean", [0.25, 1.0, 25.0])
def test_counts_are_recovered_at_the_error_of_maximum_likelihood(mean, field):
    # Told that they are counts or not, by turns: once they are recognised the fit is the same.
    for seed in seeds(1, 3):
        noise = ("auto", "poisson")[(seed + (field == "complex") + (mean == 1.0)) % 2]
        # A quarter of a count leaves a complex signal at the limit of what is called an answer with fewer samples.
        A, y, x = counted(mean, m=3000 if mean < 1 else 1500, bad=0.05, field=field, seed=seed)
        model = RobustPhaseRetrieval(0.1, noise=noise).fit(A, y)
        assert model.noise_model_.kind == "poisson"
        limit = 2.2 * expected_error(mean, *A.shape[::-1], field)
        assert distance(model.signal_, x, relative=True) < limit, seed
        assert model.converged_


def test_a_tenth_of_a_count_per_reading_is_enough():
    A, y, x = counted(0.1, m=6000, seed=2)
    assert np.mean(y == 0) > 0.85
    model = RobustPhaseRetrieval(0.1).fit(A, y)
    assert distance(model.signal_, x, relative=True) < 0.25


def test_additive_noise_stays_what_it_was():
    for noise in ("gaussian", "student", "lognormal"):
        world = make_world(30, 1500, noise=noise, attack="swap" if noise == "student" else "decoy", seed=3)
        here, there = (RobustPhaseRetrieval(0.1, noise=which).fit(world.A, world.y) for which in ("auto", "additive"))
        assert here.noise_model_.kind == "additive"
        np.testing.assert_array_equal(here.signal_, there.signal_)
        np.testing.assert_array_equal(here.weights_, there.weights_)


def test_whole_numbers_are_not_always_counts():
    """Readings in steps of one, of additive noise much wider than counts would have."""
    world = make_world(30, 1500, noise="gaussian", noise_std=1.0, norm=10.0, noise_mean=8.0, seed=2)
    y = np.rint(world.y)
    model = RobustPhaseRetrieval(0.1, noise_mean="unknown").fit(world.A, y)
    assert model.noise_model_.kind == "additive"


def test_counts_are_refused_where_there_are_none():
    world = make_world(10, 200, seed=0)
    with pytest.raises(ValueError, match="counts"):
        RobustPhaseRetrieval(0.1, noise="poisson").fit(world.A, world.y)


def test_bad_samples_alone_make_no_noise_look_uneven():
    rng = np.random.default_rng(0)
    sizes = np.abs(rng.standard_normal(4000))
    sizes[:400] = 100.0
    upper = np.concatenate((sizes[:400], sizes[400:2000]))
    ratio = np.log(np.median(upper) / np.median(sizes[2000:]))
    assert ratio > 0.15
    assert ratio < most_uneven(sizes, 0.1, 4000)


def test_many_columns_and_operators_follow_the_same_law():
    A, y, x = counted(4.0, n=16, m=1200, seed=5)
    rng = np.random.default_rng(6)
    others = rng.standard_normal((16, 2)) / 2
    both = np.column_stack((y, rng.poisson((A @ others) ** 2 + 0.4)))
    model = RobustPhaseRetrieval(0.1).fit(A, both)
    assert model.noise_model_.kind == "poisson"
    assert model.noise_model_.mixing.shape == (3,)
    for found, truth in zip(model.signal_, np.column_stack((x, others)).T, strict=True):
        assert distance(found, truth, relative=True) < 0.12
    operator = RobustPhaseRetrieval(0.1).fit(aslinearoperator(A), y)
    assert operator.noise_model_.kind == "poisson"
    assert distance(operator.signal_, x, relative=True) < 0.12


@pytest.mark.parametrize("field", ["real", "complex"])
def test_a_camera_is_recovered_at_the_error_that_its_noise_allows(field):
    """Gain, read noise and offset are unknown; the error is that of weighted least squares with the right variances."""
    for seed in seeds(1, 3):
        world = make_camera(20, 1500, field=field, seed=seed)
        model = RobustPhaseRetrieval(0.1, noise_mean="unknown", saturation=4095).fit(world.A, world.y)
        assert model.noise_model_.kind == "variance"
        assert 1.3 < model.noise_model_.shot < 3.5
        assert abs(model.noise_mean_ - 100.0) < 5.0
        energies = np.abs(world.A @ world.truth) ** 2
        used = world.clean & (world.y < 4095)
        slopes = 2 * (world.A.conj() * (world.A @ world.truth)[:, None])[used]
        columns = np.hstack((slopes.real, slopes.imag)) if field == "complex" else slopes
        information = (columns / (16.0 + 2.3 * energies[used])[:, None]).T @ columns
        variances = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
        limit = 1.5 * np.sqrt(np.trace(variances)) / world.norm
        assert distance(model.signal_, world.truth, relative=True) < limit, seed


def test_half_of_the_readings_may_be_saturated():
    for seed in seeds(1, 2):
        world = make_camera(20, 2000, saturated=0.5, contamination=0.05, seed=seed)
        model = RobustPhaseRetrieval(0.1, noise_mean="unknown", saturation=4095).fit(world.A, world.y)
        assert distance(model.signal_, world.truth, relative=True) < 0.01
        assert model.converged_


def test_readings_at_the_ceiling_do_not_say_how_common_bad_ones_are():
    """Nearly half of them there: the shortest range that holds half of the readings is next to nothing."""
    world = make_camera(12, 1200, saturated=0.5, contamination=0.05, field="complex", design="phases", seed=4)
    model = RobustPhaseRetrieval(0.1, noise_mean="unknown", saturation=4095).fit(world.A, world.y)
    assert model.noise_model_.mixing < 0.06
    np.testing.assert_allclose(model.noise_model_.shot, 2.3, rtol=0.15)


def test_a_ceiling_may_differ_from_sample_to_sample():
    world = make_camera(15, 1500, contamination=0.0, attack="none", seed=4)
    ceiling = np.where(np.arange(1500) % 2, 4095.0, 1500.0)
    model = RobustPhaseRetrieval(0.05, noise_mean="unknown", saturation=ceiling).fit(
        world.A, np.minimum(world.y, ceiling)
    )
    assert distance(model.signal_, world.truth, relative=True) < 0.01
    with pytest.raises(ValueError, match="saturation"):
        RobustPhaseRetrieval(0.05, saturation=np.ones(7)).fit(world.A, world.y)


def test_a_known_background_is_taken_away_and_its_shot_noise_is_not():
    rng = np.random.default_rng(8)
    A, _, x = counted(3.0, n=15, m=1500, seed=8)
    background = rng.uniform(0.0, 6.0, 1500)
    y = rng.poisson((A @ x) ** 2 + background).astype(float)
    model = RobustPhaseRetrieval(0.05, background=background).fit(A, y)
    assert model.noise_model_.kind == "poisson"
    assert model.noise_mean_ < 0.3
    assert distance(model.signal_, x, relative=True) < 0.1
    with pytest.raises(ValueError, match="background"):
        RobustPhaseRetrieval(0.05, background=background[:3]).fit(A, y)


@pytest.mark.parametrize("mean", [1.0, 25.0])
def test_standard_errors_cover_what_they_say(mean):
    """95% intervals of 20 entries in 10 fits: 200 of them, whose share inside is known to 1.5%."""
    inside = []
    for seed in seeds(10, 24):
        A, y, x = counted(mean, m=1000, seed=100 + seed)
        model = RobustPhaseRetrieval(0.02, noise="poisson").fit(A, y)
        error = model.standard_errors(A, y)
        aligned = model.signal_ * np.sign(model.signal_ @ x)
        inside.append(np.abs(aligned - x) < 1.96 * error)
    assert 0.91 < np.mean(inside) < 0.985


def test_signals_in_groups_get_the_answers_of_all_together():
    rng = np.random.default_rng(3)
    A, signals = rng.standard_normal((700, 10)), 1.5 * rng.standard_normal((10, 3)) / np.sqrt(10)
    y = rng.poisson((A @ signals) ** 2 + 0.2).astype(float)
    together = RobustPhaseRetrieval(0.05).fit(A, y)
    with varied(LAW_ENGINE, numbers=2 * 700):
        grouped = RobustPhaseRetrieval(0.05).fit(A, y)
    assert together.noise_model_.kind == grouped.noise_model_.kind == "poisson"
    for model in (together, grouped):
        errors = [distance(x, truth, relative=True) for x, truth in zip(model.signal_, signals.T, strict=True)]
        assert max(errors) < 0.25
        assert np.median(errors) < 0.12


def test_a_column_without_any_signal_changes_no_other():
    """It never settles; the shares and laws of bad counts of the others are found all the same."""
    rng = np.random.default_rng(5)
    n, m, p = 8, 600, 5
    A, X = rng.standard_normal((m, n)), 3 * rng.standard_normal((n, p))
    Y = rng.poisson((A @ X) ** 2 + 5.0).astype(float)
    Y[rng.random(Y.shape) < 0.05] *= 3
    dead = np.rint(20 + 10 * np.abs(rng.standard_cauchy((m, 1))))
    alone = RobustPhaseRetrieval(0.1, noise="poisson").fit(A, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        beside = RobustPhaseRetrieval(0.1, noise="poisson").fit(A, np.hstack((Y, dead)))
    for k in range(p):
        assert distance(beside.signal_[k], alone.signal_[k], relative=True) < 1e-5, k


def test_additive_noise_may_be_saturated_too():
    world = make_world(15, 1500, noise="gaussian", noise_std=0.1, contamination=0.0, attack="none", seed=4)
    ceiling = float(np.quantile(world.y, 0.7))
    model = RobustPhaseRetrieval(0.05, noise="additive", saturation=ceiling).fit(world.A, np.minimum(world.y, ceiling))
    assert model.noise_model_.kind == "additive"
    assert distance(model.signal_, world.truth, relative=True) < 0.03


# Noise of a third of the responses is about what the check of its evenness allows, and told to be additive it is not that.
@pytest.mark.filterwarnings("ignore:the model does not hold. evenness:robustphase.recover.model.ModelWarning")
def test_multiplicative_noise_that_is_skewed_neither_shifts_nor_drowns_the_signal():
    """Ten looks of speckle: the noise is as large as the signal asks, so small predictions are worth most."""
    gains = []
    for seed in seeds(1, 3):
        rng = np.random.default_rng(seed)
        A, x = rng.standard_normal((1500, 20)), rng.standard_normal(20)
        energies = (A @ x) ** 2
        y = energies * rng.gamma(10, 0.1, 1500) + 0.02 * rng.standard_normal(1500)
        y[:75] = rng.permutation(y)[:75]
        here, there = (RobustPhaseRetrieval(0.1, noise=noise).fit(A, y) for noise in ("auto", "additive"))
        assert here.noise_model_.kind == "variance"
        assert 0.05 < here.noise_model_.relative < 0.2
        gains.append(distance(here.signal_, x) / distance(there.signal_, x))
    assert np.median(gains) < 0.5


# Where the largest readings are gone the checks may say, rightly, that the rest grow too slowly.
@pytest.mark.filterwarnings("ignore::robustphase.recover.model.ModelWarning")
@pytest.mark.parametrize("attack", ["erase", "inverted", "swap"])
def test_bad_counts_may_be_those_of_the_largest_energies(attack):
    """At one count per reading no single one of them gives itself away; all those of a class together do."""
    for seed in seeds(1, 2):
        world = make_counts(20, 2000, mean_count=1.0, contamination=0.1, attack=attack, seed=seed)
        told = RobustPhaseRetrieval(0.0, noise="poisson").fit(world.A[world.clean], world.y[world.clean])
        model = RobustPhaseRetrieval(0.1, noise="poisson").fit(world.A, world.y)
        limit = 1.5 * distance(told.signal_, world.truth) + 0.05
        assert distance(model.signal_, world.truth) < limit, seed


@pytest.mark.filterwarnings("ignore::robustphase.recover.model.ModelWarning")
@pytest.mark.parametrize("design", ["on_off", "signs"])
def test_a_complex_signal_may_stand_behind_real_patterns_that_are_counted(design):
    """Error of maximum likelihood: the trace of the inverse information, in which the turn of the phase does not count."""
    rng = np.random.default_rng(4)
    A = find_design(design).sample(3000, 16, field="complex", seed=rng).real
    x = rng.standard_normal(16) + 1j * rng.standard_normal(16)
    x = x * np.sqrt(4.0 / np.mean(np.abs(A @ x) ** 2))
    means = np.abs(A @ x) ** 2 + 0.4
    y = rng.poisson(means).astype(float)
    y[:150] = np.roll(y[:150], 1)
    slopes = 2 * A * (A @ x)[:, None]
    columns = np.hstack((slopes.real, slopes.imag, np.full((3000, 1), 2.0))) / np.sqrt(means)[:, None]
    variances = np.linalg.pinv(columns.T @ columns, rcond=1e-9, hermitian=True)
    bound = np.sqrt(np.trace(variances[:-1, :-1])) / np.linalg.norm(x)
    model = RobustPhaseRetrieval(0.1, noise="poisson", field="complex").fit(A, y)
    assert distance(model.signal_, x, relative=True) < 1.6 * bound
    assert abs(model.noise_mean_ - 0.4) < 0.3


@pytest.mark.parametrize("attack", ["none", "permute"])
def test_an_offset_does_not_make_counts_of_the_readings_of_a_camera(attack):
    """With the offset the mean reading is as large as its variance, on average over all readings."""
    for seed in seeds(1, 2):
        share = 0.0 if attack == "none" else 0.05
        world = make_camera(10, 2000, saturated=1e-4, contamination=share, attack=attack, seed=seed)
        model = RobustPhaseRetrieval(0.1, noise_mean="unknown").fit(world.A, world.y)
        assert model.noise_model_.kind == "variance", seed
