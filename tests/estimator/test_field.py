"""Real and complex signals behind real and complex rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance, spectral_init
from robustphase.population import PairedSignal
from robustphase.simulate import draw_noise, make_world, on_off, random_signal, read_camera

N, M = 24, 1500


def behind_real_rows(seed, *, count=1, bad=0.05):
    """Real rows, complex signals (count, n), responses (m, count) of which a share is far too large."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, N))
    x = np.stack([random_signal(N, field="complex", seed=rng) for _ in range(count)])
    y = np.abs(A @ x.T) ** 2 + draw_noise("student", M * count, std=0.3, seed=rng).reshape(M, count)
    y[rng.random((M, count)) < bad] = 20.0
    return A, x, y


@pytest.mark.parametrize("contamination", [0.1, "auto"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_complex_signal_behind_real_rows_is_found(contamination, dtype):
    for seed in seeds(1, 3):
        A, x, y = behind_real_rows(seed)
        model = RobustPhaseRetrieval(contamination, field="complex").fit(A.astype(dtype), y[:, 0])
        assert model.converged_
        assert isinstance(model.signal_, PairedSignal)
        assert distance(model.signal_, x[0], relative=True) < 0.12
        assert distance(model.signal_, x[0].conj(), relative=True) < 0.12
        assert np.isfinite(model.certificate_)
        assert distance(model.signal_, x[0], relative=True) < model.certificate_


@pytest.mark.parametrize("design", ["on_off", "signs", "grey", "phases"])
def test_a_fit_behind_patterns_takes_about_as_many_passes_as_one_behind_normal_rows(design):
    # Gauss-Newton steps on the sample would take 100 to 300 passes for the same.
    world = make_world(48, 2400, design=design, field="complex", attack="decoy", contamination=0.05, seed=3)
    model = RobustPhaseRetrieval(0.05, field="complex").fit(world.A, world.y)
    assert model.converged_
    polish = [stage.passes for stage in model.history_ if stage.stage in ("finalists", "likelihood")]
    assert polish[1] - polish[0] < 60


@pytest.mark.parametrize("design", ["on_off", "signs", "elliptical"])
def test_a_right_answer_behind_patterns_passes_the_checks(design):
    world = make_world(
        50, 3000, design=design, field="complex", attack="replace", contamination=0.05, noise_std=0.5, seed=7
    )
    model = RobustPhaseRetrieval(0.05, field="complex").fit(world.A, world.y)
    assert model.converged_
    assert distance(model.signal_, world.truth, relative=True) < min(0.15, model.certificate_)


def test_readings_of_a_camera_lead_no_complex_signal_to_the_real_numbers():
    rng = np.random.default_rng(3)
    A = on_off().sample(120, 10, seed=rng)
    x = np.stack([random_signal(10, norm=8.0, field="complex", seed=rng) for _ in range(9)])
    y = read_camera(np.abs(A @ x.T) ** 2, gain=0.5, read_noise=1.5, offset=12.0, bits=8, seed=rng)
    model = RobustPhaseRetrieval(0.1, field="complex", noise_mean="unknown", saturation=255.0).fit(A, y)
    for found, truth in zip(model.signal_, x, strict=True):
        assert distance(found, truth, relative=True) < 0.2


def test_a_complex_type_without_imaginary_parts_asks_for_a_complex_signal():
    A, _, y = behind_real_rows(3)
    told = RobustPhaseRetrieval(field="complex").fit(A, y[:, 0])
    meant = RobustPhaseRetrieval().fit(A.astype(complex), y[:, 0])
    assert distance(told.signal_, meant.signal_, relative=True) < 1e-6


def test_many_signals_behind_real_rows_are_found_together():
    A, x, y = behind_real_rows(4, count=12)
    model = RobustPhaseRetrieval(field="complex").fit(A, y)
    assert max(distance(one, truth, relative=True) for one, truth in zip(model.signal_, x, strict=True)) < 0.12


def test_a_real_operator_takes_a_complex_signal():
    A, x, y = behind_real_rows(5)
    model = RobustPhaseRetrieval(field="complex").fit(aslinearoperator(A), y[:, 0])
    assert distance(model.signal_, x[0], relative=True) < 0.12


def test_batches_follow_the_first():
    A, x, y = behind_real_rows(6)
    A = (A > 0) * 1.0
    y = np.abs(A @ x.T) ** 2 + draw_noise("student", M, std=0.3, seed=1)[:, np.newaxis]
    model = RobustPhaseRetrieval(field="complex").partial_fit(A[:1000], y[:1000, 0])
    before = distance(model.signal_, x[0], relative=True)
    model.partial_fit(A[1000:], y[1000:, 0])
    assert distance(model.signal_, x[0], relative=True) < 1.2 * before


def test_the_start_leaves_the_real_subspace():
    A, x, y = behind_real_rows(7)
    start = spectral_init(A, y[:, 0], field="complex")
    assert min(distance(one, x[0], relative=True, conjugate=True) for one in start.candidates) < 0.5


def test_what_cannot_be_meant_is_refused():
    A, x, y = behind_real_rows(8)
    with pytest.raises(ValueError, match="field"):
        RobustPhaseRetrieval(field="quaternion").fit(A, y[:, 0])
    with pytest.raises(ValueError, match="whiten"):
        RobustPhaseRetrieval(whiten="yes").fit(A, y[:, 0])
    with pytest.raises(ValueError, match='field="real"'):
        RobustPhaseRetrieval(field="real").fit(A + 1j * A[::-1], y[:, 0])
    with pytest.raises(ValueError, match="init is real"):
        RobustPhaseRetrieval(field="complex", init=np.ones(N)).fit(A, y[:, 0])
    with pytest.raises(ValueError, match='field="complex"'):
        RobustPhaseRetrieval(init=x[0]).fit(A, y[:, 0])
    with pytest.raises(ValueError, match="for real data"):
        RobustPhaseRetrieval(field="complex").fit(A, y[:, 0]).standard_errors(A, y[:, 0])


def test_a_start_that_was_given_is_followed():
    A, x, y = behind_real_rows(9)
    model = RobustPhaseRetrieval(field="complex", init=x[0] + 0.1).fit(A, y[:, 0])
    assert distance(model.signal_, x[0], relative=True) < 0.12


@pytest.mark.parametrize("method", ["mean", "covariance", "spectral"])
def test_other_starts_behind_real_rows_are_complex_too(method):
    world = make_world(12, 6000, design="real_gaussian", field="complex", attack="none", noise_std=0.1, seed=8)
    start = spectral_init(
        world.A, world.y, 0.0 if method == "spectral" else 0.01, method=method, field="complex"
    ).signal
    real = spectral_init(world.A, world.y, 0.0 if method == "spectral" else 0.01, method=method).signal
    assert distance(start, world.truth, conjugate=True) < 0.5 * distance(real, world.truth, conjugate=True)


def expected_error(model):
    return next(check.figure for check in model.model_check_.checks if check.name == "expected error")


@pytest.mark.parametrize(
    ("design", "field"), [("grey", "real"), ("grey", "complex"), ("correlated", "real"), ("on_off", "complex")]
)
def test_the_expected_error_is_that_of_the_signal_behind_the_rows_as_they_were_given(design, field):
    # Behind rows with a mean, or correlated ones, noise is worst where the rows say least, whatever rows it was fitted behind.
    ratios = []
    for seed in range(4):
        world = make_world(
            30,
            1800,
            design=design,
            field=field,
            contamination=0.0,
            attack="none",
            noise="gaussian",
            noise_std=0.3,
            seed=seed,
        )
        model = RobustPhaseRetrieval(0.05, field=field).fit(world.A, world.y)
        ratios.append(expected_error(model) / distance(model.signal_, world.truth, relative=True))
    assert 0.6 < np.median(ratios) < 1.6, ratios


def test_a_signal_that_noise_hides_behind_a_strong_mean_is_not_taken_for_known():
    # Nearly all of the responses is the mean of the rows times that of the signal.
    rng = np.random.default_rng(0)
    x = random_signal(N, field="complex", seed=rng) + 1.0
    A = 0.5 + 0.3 * rng.standard_normal((M, N))
    y = np.abs(A @ x) ** 2
    y = y + 0.3 * y.mean() * rng.standard_normal(M)
    with pytest.warns(UserWarning, match="noise"):
        model = RobustPhaseRetrieval(0.05, field="complex").fit(A, y)
    assert distance(model.signal_, x, relative=True) > 0.25
    assert not model.converged_
    assert not np.isfinite(model.certificate_)
