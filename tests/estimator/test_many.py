"""Many signals behind one design: the same answers as one by one, with everything that is each signal's own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from tests.effort import THOROUGH, seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.constants import varied
from robustphase.descend.climb import CLIMB
from robustphase.recover.engine import ENGINE

N, M, P = 16, 800, 5


def gaussian(rng, complex_data):
    def draw(*shape):
        if complex_data:
            return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)
        return rng.standard_normal(shape)

    return draw


def make(seed=0, *, complex_data=False, background=0.0, noise=0.2, p=P, wrong_rows=M // 50):
    """Signals of different norms; a different twentieth of the responses and the same fiftieth of the patterns are wrong."""
    rng = np.random.default_rng(seed)
    draw = gaussian(rng, complex_data)
    A, X = draw(M, N), draw(N, p) / np.sqrt(N) * rng.uniform(0.3, 3.0, p)
    Y = np.abs(A @ X) ** 2
    Y += (background + noise * rng.standard_t(4, (M, p))) * np.linalg.norm(X, axis=0) ** 2
    observed, wrong = A.copy(), rng.choice(M, wrong_rows, replace=False)
    observed[wrong] = draw(wrong.size, N)
    for column in Y.T:
        bad = rng.choice(M, M // 20, replace=False)
        column[bad] = rng.permutation(column[bad]) * rng.uniform(0, 4, bad.size)
    return observed, Y, X


@pytest.fixture(scope="module")
def usual():
    """A fit with its data."""
    A, Y, _ = make()
    return A, Y, RobustPhaseRetrieval(0.1).fit(A, Y)


@pytest.mark.parametrize("complex_data", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
def test_answers_are_those_of_separate_fits_where_no_row_is_wrong_for_all(complex_data, noise_mean):
    A, Y, X = make(complex_data=complex_data, background=2.0 if noise_mean == "unknown" else 0.0, wrong_rows=0)
    # Run to a tenth of the usual tolerance, so that what is left to go is less than what is compared.
    with varied(CLIMB, tol=0.1 * CLIMB.tol):
        model = RobustPhaseRetrieval(0.1, noise_mean=noise_mean).fit(A, Y)
        separate = [RobustPhaseRetrieval(0.1, noise_mean=noise_mean).fit(A, Y[:, k]) for k in range(P)]
    assert model.signal_.shape == (P, N)
    assert model.converged_.all()
    assert_array_equal(model.row_weights_, 1.0)
    for k, alone in enumerate(separate):
        assert distance(model.signal_[k], alone.signal_, relative=True) < 1e-6
        assert distance(model.signal_[k], X[:, k], relative=True) < 0.15
        assert model.noise_mean_[k] == pytest.approx(alone.noise_mean_, rel=1e-3, abs=1e-9)
        assert_allclose(model.weights_[:, k], alone.weights_, atol=1e-3)


def levels_of_badness(p, *, complex_data, seed):
    """One design, p signals, and a share of bad responses that grows from a twentieth to a third along the columns."""
    rng = np.random.default_rng(seed)
    draw = gaussian(rng, complex_data)
    A, X = draw(M, 20), draw(20, p) / np.sqrt(20) * rng.uniform(0.5, 2.0, p)
    power = np.linalg.norm(X, axis=0) ** 2
    Y = np.abs(A @ X) ** 2 + 0.2 * power * rng.standard_t(4, (M, p))
    for k, level in enumerate(np.linspace(0.05, 0.33, p)):
        bad = rng.choice(M, int(level * M), replace=False)
        Y[bad, k] = power[k] * rng.uniform(4, 12, bad.size)
    return A, Y, X


# A few signals with every kind of data and level; of many, which take the other way to a start, each kind and each level once.
@pytest.mark.parametrize(
    ("p", "complex_data", "contamination"),
    [
        (4, False, 0.35),
        (4, True, 0.35),
        (4, False, "auto"),
        (4, True, "auto"),
        (6, False, "auto"),
        (6, True, 0.35),
    ],
)
def test_one_against_many(p, complex_data, contamination):
    """What many signals get together is what each gets alone, also beyond the number that all get the broad start."""
    signals, levels, certificates = {}, {}, {}
    for seed in seeds(1, 2):
        A, Y, X = levels_of_badness(p, complex_data=complex_data, seed=seed)
        with varied(ENGINE, broad_columns=4):
            many = RobustPhaseRetrieval(contamination).fit(A, Y)
        for k in range(p):
            one, case = RobustPhaseRetrieval(contamination).fit(A, Y[:, k]), f"column {k} of {p}, seed {seed}"
            assert distance(one.signal_, X[:, k], relative=True) < 0.1, case
            signals[case] = distance(many.signal_[k], one.signal_, relative=True)
            levels[case] = abs(many.contamination_[k] - one.contamination_)
            # Told of much more contamination than shows, nobody vouches for anything.
            both = np.array([many.certificate_[k], one.certificate_])
            certificates[case] = 0.0 if np.isinf(both).all() else abs(both[0] / both[1] - 1)
        assert np.isfinite(many.certificate_).sum() >= p // 2, f"seed {seed}: too few certificates to compare"
    too_far = {
        what: {case: f"{value:.1e}" for case, value in found.items() if not value < most}
        for what, found, most in (
            ("signals", signals, 1e-3),
            ("levels", levels, 1e-3),
            ("certificates", certificates, 1e-2),
        )
    }
    assert not any(too_far.values()), f"one signal and many give different answers: {too_far}"


def test_every_attribute_has_one_entry_per_signal():
    A, Y, _ = make()
    model = RobustPhaseRetrieval("auto").fit(A, Y)
    assert model.weights_.shape == model.residual_weights_.shape == model.predict(A).shape == (M, P)
    assert model.initial_signal_.shape == (P, N)
    for values in (model.noise_mean_, model.noise_scale_, model.contamination_, model.certificate_, model.converged_):
        assert values.shape == (P,)
    assert model.flag_samples().shape == (M, P)
    # One of five is heard again, which takes half of them.
    assert model.history_[-1].passes < 150
    assert np.isfinite(model.score(A, Y))


def test_a_bad_response_is_one_signals_own_and_a_bad_row_is_everybodys():
    A, Y, X = make()
    Y[3, 1] = np.nan
    A[7] = np.inf
    model = RobustPhaseRetrieval(0.1, nonfinite="drop").fit(A, Y)
    assert_array_equal(model.weights_[7], 0.0)
    assert model.weights_[3, 1] == 0.0
    assert model.weights_[3, 0] > 0
    assert max(distance(model.signal_[k], X[:, k], relative=True) for k in range(P)) < 0.15
    assert np.isnan(model.predict(A)[7]).all()


def test_scaling_one_column_scales_one_signal(usual):
    A, Y, first = usual
    scaled = RobustPhaseRetrieval(0.1).fit(A, Y * np.array([1.0, 1e-12, 1e12, 4.0, 1.0]))
    for k, factor in enumerate((1.0, 1e-6, 1e6, 2.0, 1.0)):
        assert distance(scaled.signal_[k], factor * first.signal_[k], relative=True) < 1e-5


def test_a_fooled_start_is_noticed_and_recovered_with_care():
    A, Y, X = make(noise=0.1)
    rng = np.random.default_rng(1)
    # A second signal on a fifth of the samples of one column, those where its responses are largest.
    decoy = rng.standard_normal(N)
    decoy *= 2 * np.linalg.norm(X[:, 0]) / np.linalg.norm(decoy)
    energy = (A @ decoy) ** 2
    rows = np.argsort(-energy)[: M // 5]
    Y[rows, 0] = energy[rows]
    model = RobustPhaseRetrieval(0.25).fit(A, Y)
    alone = RobustPhaseRetrieval(0.25).fit(A, Y[:, 0])
    assert distance(alone.signal_, X[:, 0], relative=True) < 0.3
    assert distance(model.signal_[0], X[:, 0], relative=True) < 0.3


@pytest.mark.parametrize("complex_data", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("noise_mean", ["zero", "unknown"])
def test_a_column_of_equal_responses_has_no_signal_and_disturbs_no_other(complex_data, noise_mean):
    # Both values with each field and with each mean of the noise; all crossings where there is time.
    for value in (0.0, 7.0) if THOROUGH else (7.0 if complex_data == (noise_mean == "zero") else 0.0,):
        A, Y, X = make(complex_data=complex_data, background=2.0 if noise_mean == "unknown" else 0.0)
        Y[:, 2] = value
        with pytest.warns(ConvergenceWarning, match=r"1 of 5 columns of y \(the first is column 2\) hold no signal"):
            model = RobustPhaseRetrieval(0.1, noise_mean=noise_mean).fit(A, Y)
        assert_array_equal(model.signal_[2], 0.0)
        assert model.certificate_[2] == np.inf
        assert_array_equal(model.converged_, np.arange(P) != 2)
        assert max(distance(model.signal_[k], X[:, k], relative=True) for k in range(P) if k != 2) < 0.15, value


def test_groups_of_signals_give_the_same_answers():
    A, Y, _ = make(wrong_rows=0)
    whole = RobustPhaseRetrieval(0.1).fit(A, Y)
    with varied(ENGINE, numbers=2 * M):
        grouped = RobustPhaseRetrieval(0.1).fit(A, Y)
    for k in range(P):
        assert distance(whole.signal_[k], grouped.signal_[k], relative=True) < 1e-6, f"column {k}"


def test_the_order_of_the_signals_does_not_matter(usual):
    A, Y, first = usual
    order = np.array([3, 0, 4, 1, 2])
    second = RobustPhaseRetrieval(0.1).fit(A, Y[:, order])
    for k in range(P):
        assert distance(second.signal_[k], first.signal_[order[k]], relative=True) < 1e-6
    assert_allclose(second.certificate_, first.certificate_[order], rtol=0.1)


def test_what_works_for_one_signal_only_is_refused(case):
    for parameters, what in [
        ({"step": "paper"}, "step='paper'"),
        ({"batches": 2}, "batches=2"),
        ({"init": "mean"}, "an init of your own"),
        ({"polish": False}, "polish=False"),
        ({"mean_estimator": "mmw"}, "mean_estimator='mmw'"),
    ]:
        with case(what):
            A, Y, _ = make(p=2)
            with pytest.raises(ValueError, match=what):
                RobustPhaseRetrieval(0.1, **parameters).fit(A, Y)


def test_streams_and_standard_errors_are_for_one_signal():
    A, Y, _ = make(p=2)
    with pytest.raises(ValueError, match="partial_fit follows one signal"):
        RobustPhaseRetrieval(0.1).partial_fit(A, Y)
    with pytest.raises(ValueError, match="standard errors are for one signal"):
        RobustPhaseRetrieval(0.1).fit(A, Y).standard_errors(A, Y)


def test_a_column_of_nothing_is_refused():
    A, Y, _ = make(p=3)
    Y[:, 1] = np.nan
    with pytest.raises(ValueError, match="column 1 of y"):
        RobustPhaseRetrieval(0.1, nonfinite="drop").fit(A, Y)
