"""Fits with linear operators: what arrays give, from products alone; and coded diffraction with broken detector readings."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.fft import dct, idct
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from tests.effort import THOROUGH

import robustphase as rp


class Bare:
    """What PyLops operators share with SciPy's, and no more."""

    def __init__(self, matrix):
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    def matvec(self, x):
        return self.matrix @ x

    def rmatvec(self, x):
        return self.matrix.conj().T @ x


def world(field="real", mean=0.0, n=30, m=1200, attack="scaled", seed=0):
    return rp.simulate.make_world(
        n,
        m,
        contamination=0.05,
        attack=attack,
        noise="student",
        noise_std=0.3,
        noise_mean=mean,
        field=field,
        seed=seed,
    )


def error(signal, truth):
    return rp.distance(signal, truth, relative=True)


@pytest.mark.parametrize("wrap", [aslinearoperator, Bare])
@pytest.mark.parametrize("field", ["real", "complex"])
@pytest.mark.parametrize("mean", [0.0, 2.0])
def test_an_operator_gives_what_its_matrix_gives(wrap, field, mean):
    # A world in which no second opinion is asked for: its candidates are those of the start, which operators have fewer of.
    w = world(field, mean, seed=1)
    model = rp.RobustPhaseRetrieval(0.1, noise_mean="unknown" if mean else "zero")
    array = model.fit(w.A, w.y)
    assert "second opinion" not in [record.stage for record in array.history_]
    expected, background, flags = array.signal_, array.noise_mean_, array.flag_samples()
    operator = model.fit(wrap(w.A), w.y)
    # Other starts, the same maximum of the likelihood.
    assert rp.distance(operator.signal_, expected, relative=True) < 1e-3
    assert operator.noise_mean_ == pytest.approx(background, abs=1e-3)
    assert np.mean(operator.flag_samples() != flags) < 0.005


def test_rows_may_have_any_size():
    w = world("complex")
    for size in (1e-4, 1.0, 1e4):
        operator = aslinearoperator(size * w.A)
        model = rp.RobustPhaseRetrieval(0.1).fit(operator, w.y)
        assert error(size * model.signal_, w.truth) < 0.1, size
        assert_allclose(model.predict(operator), np.abs(size * w.A @ model.signal_) ** 2, rtol=1e-10, err_msg=f"{size}")


def test_every_attribute_is_set():
    w = world(m=1000)
    model = rp.RobustPhaseRetrieval("auto", noise_mean="unknown").fit(aslinearoperator(w.A), w.y)
    assert model.signal_.shape == model.initial_signal_.shape == (30,)
    assert model.weights_.shape == model.residual_weights_.shape == (1000,)
    assert 0 <= model.weights_.min() <= model.weights_.max() <= 1
    assert 0.02 < model.contamination_ < 0.12
    assert model.converged_
    assert model.n_iter_ == len(model.history_)
    assert model.n_features_in_ == 30
    assert model.noise_scale_ > 0
    assert np.isnan(model.certificate_)
    assert [record.stage for record in model.history_][-1] == "certificate"
    assert np.isfinite(model.history_[-1].gradient_norm)
    passes = [record.passes for record in model.history_]
    assert passes == sorted(passes)
    assert passes[0] > 0


def test_a_fit_repeats_and_ends_where_it_starts_at_the_answer():
    w = world("complex")
    first = rp.RobustPhaseRetrieval(0.1).fit(aslinearoperator(w.A), w.y).signal_
    again = rp.RobustPhaseRetrieval(0.1).fit(aslinearoperator(w.A), w.y).signal_
    assert np.array_equal(first, again)
    started = rp.RobustPhaseRetrieval(0.1, init=first).fit(aslinearoperator(w.A), w.y).signal_
    assert rp.distance(started, first, relative=True) < 1e-3


def test_polish_may_be_left_out():
    w = world()
    model = rp.RobustPhaseRetrieval(0.1, polish=False).fit(aslinearoperator(w.A), w.y)
    assert error(model.signal_, w.truth) < 0.1


def test_missing_responses_are_dropped():
    w = world()
    y = w.y.copy()
    y[[3, 500]] = np.nan, np.inf
    with pytest.raises(ValueError, match='nonfinite="drop"'):
        rp.RobustPhaseRetrieval(0.1).fit(aslinearoperator(w.A), y)
    model = rp.RobustPhaseRetrieval(0.1, nonfinite="drop").fit(aslinearoperator(w.A), y)
    assert error(model.signal_, w.truth) < 0.1
    assert not model.weights_[[3, 500]].any()


def test_attacks_on_responses_are_withstood():
    for seed in (1, 2):
        clean = world("complex", n=30, m=1200, attack="none", seed=seed)
        unspoilt = rp.RobustPhaseRetrieval(0.1).fit(aslinearoperator(clean.A), clean.y).signal_
        for attack in ("huge", "decoy_in_place", "permute", "erase"):
            w = world("complex", n=30, m=1200, attack=attack, seed=seed)
            reached = rp.RobustPhaseRetrieval(0.1).fit(aslinearoperator(w.A), w.y).signal_
            assert error(reached, w.truth) < 1.5 * error(unspoilt, clean.truth), f"{attack}, seed {seed}"


def diffraction(side, masks, kind, seed, background=0.0):
    """Readings of a complex picture, Student noise of a fifth of the mean reading, and 5 % of them junk."""
    rng = np.random.default_rng(seed)
    patterns = rp.simulate.CodedDiffraction((side, side), masks, kind=kind, seed=seed)
    picture = rng.random((side, side)) * np.exp(1j * rng.random((side, side)))
    truth = picture.ravel()
    level = np.vdot(truth, truth).real
    readings = np.abs(patterns @ truth) ** 2 + level * (
        0.2 / np.sqrt(3) * rng.standard_t(3, patterns.shape[0]) + background
    )
    junk = rng.random(readings.size) < 0.05
    return patterns, truth, readings, junk, np.where(junk, rng.uniform(0, 20 * level, readings.size), readings)


@pytest.mark.parametrize(
    ("side", "kind", "background"),
    [(16, "octanary", 1.5), (24, "phases", 0.0)] + ([(16, "octanary", 0.0), (24, "phases", 1.5)] if THOROUGH else []),
)
def test_diffraction_with_junk_is_as_accurate_as_without(side, kind, background):
    patterns, truth, readings, junk, spoilt = diffraction(side, 12, kind, 3, background)
    model = rp.RobustPhaseRetrieval(
        0.1, noise_mean="unknown" if background else "zero", nonfinite="drop", random_state=0
    )
    reached = error(model.fit(patterns, spoilt).signal_, truth)
    assert model.converged_
    assert model.flag_samples()[junk].mean() > 0.6
    clean = error(model.fit(patterns, np.where(junk, np.nan, readings)).signal_, truth)
    assert reached < 1.12 * clean
    assert reached < 0.1


def test_a_real_transform_gives_a_real_signal():
    """Cosine transforms under random signs: the real kin of coded diffraction."""
    n, blocks = 128, 12
    rng = np.random.default_rng(7)
    signs = rng.choice((-1.0, 1.0), (blocks, n)) * np.where(rng.random((blocks, n)) < 0.5, 0.5, 1.3)
    operator = LinearOperator(
        (blocks * n, n),
        matvec=lambda x: dct(signs * x.ravel(), norm="ortho").ravel(),
        rmatvec=lambda c: (signs * idct(c.reshape(blocks, n), norm="ortho")).sum(axis=0),
        dtype=float,
    )
    truth = rng.standard_normal(n)
    y = (operator @ truth) ** 2
    y += 0.1 * y.mean() * rng.standard_normal(y.size)
    spoilt = np.where(rng.random(y.size) < 0.05, 10 * y.mean(), y)
    model = rp.RobustPhaseRetrieval(0.1).fit(operator, spoilt)
    assert model.signal_.dtype == np.float64
    assert error(model.signal_, truth) < 1.15 * error(rp.RobustPhaseRetrieval(0.1).fit(operator, y).signal_, truth)


def test_what_needs_rows_is_refused_by_name(case):
    for options, words in [
        ({"whiten": True}, "whiten=True"),
        ({"step": "paper"}, "step='paper'"),
        ({"batches": 3}, "batches=3"),
        ({"init": "covariance"}, "init='covariance'"),
    ]:
        with case(words):
            w = world(n=10, m=200)
            with pytest.raises(ValueError, match=words):
                rp.RobustPhaseRetrieval(0.1, **options).fit(aslinearoperator(w.A), w.y)


def test_signals_of_an_operator_are_fitted_one_by_one():
    w = world(n=10, m=200)
    with pytest.raises(ValueError, match="one by one"):
        rp.RobustPhaseRetrieval(0.1).fit(aslinearoperator(w.A), np.stack((w.y, w.y), axis=1))


def test_a_stream_takes_arrays():
    w = world(n=10, m=400)
    model = rp.RobustPhaseRetrieval(0.1).fit(w.A, w.y)
    with pytest.raises(ValueError, match="partial_fit takes arrays"):
        model.partial_fit(aslinearoperator(w.A), w.y)


def test_data_that_does_not_belong_together_is_refused():
    w = world(n=10, m=200)
    model = rp.RobustPhaseRetrieval(0.1)
    with pytest.raises(ValueError, match="200 rows but y has 199"):
        model.fit(aslinearoperator(w.A), w.y[:-1])
    with pytest.raises(ValueError, match="fewer samples than unknowns"):
        model.fit(aslinearoperator(w.A[:5]), w.y[:5])
    with pytest.raises(TypeError, match="without an adjoint"):
        model.fit(LinearOperator(w.A.shape, matvec=lambda x: w.A @ x, dtype=float), w.y)
    with pytest.raises(ValueError, match="NaN or infinite"):
        model.fit(aslinearoperator(np.where(w.A > 2, np.inf, w.A)), w.y)
    with pytest.raises(ValueError, match="nothing to recover"):
        model.fit(aslinearoperator(0 * w.A), w.y)


def test_the_smallest_operators_work():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 1))
    model = rp.RobustPhaseRetrieval(0.1).fit(aslinearoperator(rows), 4 * rows[:, 0] ** 2)
    assert abs(model.signal_[0]) == pytest.approx(2, rel=1e-6)
