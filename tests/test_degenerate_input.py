"""Whatever is passed: a finite answer, or an error in our words; never another exception, never a warning of NumPy."""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from tests.effort import THOROUGH

from robustphase import (
    RobustPhaseRetrieval,
    baselines,
    distance,
    leading_eigenvector,
    paper,
    robust_covariance,
    robust_mean,
    spectral_init,
)
from robustphase.constants import varied
from robustphase.recover.engine import ENGINE

CASES = {
    "zero A": lambda A, y: (0 * A, y),
    "equal rows": lambda A, y: (np.repeat(A[:1], len(A), axis=0), y),
    "equal samples": lambda A, y: (np.repeat(A[:1], len(A), axis=0), np.full(len(y), y[0])),
    "zero column": lambda A, y: (A * (np.arange(A.shape[1]) != 1), y),
    "equal columns": lambda A, y: (A[:, np.r_[0, 0 : A.shape[1] - 1]], y),
    "mostly zero rows": lambda A, y: (A * (np.arange(len(A)) % 5 > 2)[:, np.newaxis], y),
    "one number": lambda A, y: (A[:1, :1], y[:1]),
    "one row": lambda A, y: (A[:1], y[:1]),
    "two samples": lambda A, y: (A[:2, :2], y[:2]),
    "fewer samples than unknowns": lambda A, y: (A[:3], y[:3]),
    "transposed": lambda A, y: (A.T, y),
    "no rows": lambda A, y: (A[:0], y[:0]),
    "no columns": lambda A, y: (A[:, :0], y),
    **{f"A times {size:g}": lambda A, y, size=size: (size * A, y) for size in (1e-200, 1e-30, 1e9, 1e20, 1e30, 1e100)},
    "single precision times 1e9": lambda A, y: ((1e9 * A).astype("F" if np.iscomplexobj(A) else "f"), y),
    "one long row": lambda A, y: (A * np.where(np.arange(len(A)) == 3, 1e18, 1.0)[:, np.newaxis], y),
    "one long single row": lambda A, y: (
        A.real.astype("f") * np.where(np.arange(len(A)) == 3, 1e10, 1).astype("f")[:, None],
        y,
    ),
    "zero y": lambda A, y: (A, 0 * y),
    "constant y": lambda A, y: (A, np.full(len(y), 3.0)),
    "one response": lambda A, y: (A, np.where(np.arange(len(y)) == 0, 1.0, 0.0)),
    "vanishing y": lambda A, y: (A, 1e-310 * y),
    "large responses": lambda A, y: (A, np.where(np.arange(len(y)) % 10 == 3, -1e18, y)),
    "larger responses": lambda A, y: (A, np.where(np.arange(len(y)) % 10 == 3, 1e36, y)),
    "hardly a sample": lambda A, y: (np.where(np.arange(len(A))[:, np.newaxis] < 2, A, np.nan), y),
    "strings": lambda A, y: (A.astype(str), y),
    "objects": lambda A, y: (np.where(A[0, 0] == A, None, A.astype(object)), y),
    "ragged": lambda A, y: ([[1.0, 2.0], [3.0]], [1.0, 2.0]),
    "a number": lambda A, y: (np.float64(3), np.float64(2)),
    "a vector": lambda A, y: (A[:, 0], y),
    "a cube": lambda A, y: (A[:, :, np.newaxis], y),
    "sparse": lambda A, y: (scipy.sparse.csr_array(A), y),
    "sparse y": lambda A, y: (A, scipy.sparse.csr_array(y[:, np.newaxis])),
    "one response too few": lambda A, y: (A, y[:-1]),
    "responses in a row": lambda A, y: (A, y[np.newaxis]),
}


def fit(**parameters):
    return lambda A, y: RobustPhaseRetrieval(**parameters).fit(A, y)


def operator(A, y):
    return RobustPhaseRetrieval().fit(aslinearoperator(A) if getattr(A, "ndim", 0) == 2 else A, y)


def several(count, **parameters):
    def entry(A, y):
        columns = np.multiply.outer(y, np.arange(1, count + 1)) if getattr(y, "ndim", 0) == 1 else y
        return RobustPhaseRetrieval(**parameters).fit(A, columns)

    return entry


def many(**parameters):
    """More signals than all get the broad start: three, where two are the most that do."""

    def entry(A, y):
        with varied(ENGINE, broad_columns=2):
            return several(3, **parameters)(A, y)

    return entry


def stream(A, y):
    return RobustPhaseRetrieval(nonfinite="drop").partial_fit(A, y).partial_fit(A, y)


def descent(algorithm):
    return lambda A, y: algorithm(np.ones(4), [(A, y)] * 2, contamination=0.1)


ENTRIES = {
    "fit": fit(),
    "fit that drops": fit(nonfinite="drop"),
    "fit, auto": fit(contamination="auto"),
    "fit, level zero": fit(contamination=0.0),
    "fit, unknown mean": fit(noise_mean="unknown"),
    "fit, whitened": fit(whiten=True),
    "fit, paper": fit(step="paper"),
    "fit, mean": fit(init="mean"),
    "operator": operator,
    "several": several(2),
    "many": many(),
    "many, unknown mean": many(noise_mean="unknown"),
    "stream": stream,
    "start": lambda A, y: spectral_init(A, y, nonfinite="drop"),
    "covariance start": lambda A, y: spectral_init(A, y, method="covariance"),
    "mean": lambda A, y: robust_mean(A),
    "covariance": lambda A, y: robust_covariance(A, "auto", assume_centered=True),
    "eigenvector": lambda A, y: leading_eigenvector(A, assume_centered=True),
    "procedure 1": lambda A, y: paper.procedure_1(A, y, contamination=0.1),
    "procedure 3": lambda A, y: paper.procedure_3(A, y, contamination=0.1, configuration="covariance"),
    "algorithm 2": descent(paper.algorithm_2),
    "algorithm 4": descent(paper.algorithm_4),
    "pairs": lambda A, y: paper.pair_samples(A, y)[2],
    "batches": lambda A, y: next(iter(paper.split_batches(A, y, 1)))[1],
    **{name: lambda A, y, method=method: method(A, y, max_iter=20) for name, method in baselines.METHODS.items()},
}
#: Other ways to fit, which share what looks at the data first.
WAYS = [entry for entry in ENTRIES if entry.startswith(("fit ", "fit,", "operator", "several", "many", "stream"))]
#: Statistics of the rows do not see what changes the responses alone.
ROWS_ONLY = ("mean", "covariance", "eigenvector")
RESPONSES_ONLY = (
    "equal samples",
    "zero y",
    "constant y",
    "one response",
    "vanishing y",
    "large responses",
    "larger responses",
    "sparse y",
    "one response too few",
    "responses in a row",
)
ANSWERS = ("signal_", "weights_", "noise_mean_", "signal", "weights", "location", "covariance", "vector", "candidates")


def samples(field):
    rng = np.random.default_rng(5)
    A, x = rng.standard_normal((60, 4)), np.array([1.0, -0.5, 2.0, 0.3])
    if field == "complex":
        A, x = (A + 1j * rng.standard_normal((60, 4))) / np.sqrt(2), x * np.exp(1j * np.arange(4))
    return A, x, np.abs(A @ x) ** 2 + 0.01 * rng.standard_normal(60)


def cases_for(entry):
    """All of them in both fields where there is time.

    Otherwise an entry gets every case in one of the two fields, by turns; a fit, and one that would drop samples, in both
    between them; each of the other ways to fit gets every third case.
    """
    number = [*ENTRIES].index(entry)
    every = 3 if entry in WAYS and entry != "fit that drops" else 1
    for place, (case, change) in enumerate(CASES.items()):
        if entry in ROWS_ONLY and case in RESPONSES_ONLY:
            continue
        if THOROUGH or (place + number) % every == 0:
            for field in ("real", "complex") if THOROUGH else (("real", "complex")[(place + number) % 2],):
                yield case, change, field


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_input_gets_a_finite_answer_or_an_error_in_our_words(entry):
    for case, change, field in cases_for(entry):
        A, _, y = samples(field)
        with warnings.catch_warnings():
            # What we warn of is meant for people; what NumPy warns of is not, and stays an error.
            warnings.simplefilter("ignore", UserWarning)
            try:
                found = ENTRIES[entry](*change(A, y))
            except Exception as error:
                refused = isinstance(error, (ValueError, TypeError)) and not isinstance(error, np.linalg.LinAlgError)
                if refused and "robustphase" in traceback.extract_tb(error.__traceback__)[-1].filename:
                    continue
                raise AssertionError(f"{case}, {field}: {error!r}") from error
        answers = [found] if isinstance(found, np.ndarray) else [getattr(found, name, 0.0) for name in ANSWERS]
        finite = all(np.isfinite(answer).all() for answer in answers)
        # Methods of the paper and the literature answer NaN for NaN that nobody dropped.
        assert finite or (case == "hardly a sample" and entry in ("pairs", "batches")), f"{case}, {field}"


@pytest.mark.parametrize("field", ["real", "complex"])
def test_rows_in_any_unit_give_the_signal_in_the_inverse_unit(field):
    A, x, y = samples(field)
    # Tiny and huge in both fields, all where there is time.
    for size in (1e-30, 1e-9, 1e9, 1e30) if THOROUGH else ((1e-30, 1e9) if field == "real" else (1e-9, 1e30)):
        several = RobustPhaseRetrieval().fit(size * A, np.stack((y, y), axis=1)).signal_
        stream = RobustPhaseRetrieval().partial_fit(size * A, y).partial_fit(size * A, y).signal_
        start = spectral_init(size * A, y).signal
        whitened = RobustPhaseRetrieval(whiten=True).fit(size * A, y).signal_
        for signal in (RobustPhaseRetrieval().fit(size * A, y).signal_, *several, stream, whitened):
            assert distance(size * signal, x, relative=True) < 0.05
        assert distance(size * start, x, relative=True) < 0.7


def test_responses_without_a_signal_give_zero_and_say_so():
    A, _, y = samples("real")
    for responses in (0 * y, np.full(60, 3.0)):
        with pytest.warns(UserWarning, match="no signal at all"):
            model = RobustPhaseRetrieval().fit(A, responses)
        assert not model.converged_
        assert not model.signal_.any()


def test_the_errors_name_what_is_wrong_and_what_to_do():
    A, _, y = samples("real")
    for wrong, message in (
        ((0 * A, y), "all entries of A are zero.*Check how A was read"),
        ((1e-200 * A, y), r"order of 1e-\d+, too small.*Divide A by 1e-\d+"),
        ((A, 1e-310 * y), "a typical response of y is .*too small.*Divide y"),
        ((A, np.where(np.arange(y.size) == 5, 1.0, 1e-250 * y)), "a typical response of y is .*too small.*Divide y"),
        (([[1.0], [2.0, 3.0]], [1.0, 2.0]), "A cannot be made into an array.*same length"),
    ):
        for entry in (RobustPhaseRetrieval().fit, spectral_init, baselines.wirtinger_flow):
            with pytest.raises(ValueError, match=message):
                entry(*wrong)
    with pytest.raises(TypeError, match=r"A is a sparse matrix.*A\.toarray"):
        spectral_init(scipy.sparse.csr_array(A), y)
    with pytest.raises(ValueError, match=r"constant steps of the algorithm are for standard normal rows\. Divide A by"):
        paper.algorithm_2(np.ones(4), [(1e9 * A, y)], contamination=0.1)


def test_a_start_that_explains_no_sample_is_never_passed_off_as_an_answer():
    A, x, y = samples("real")
    for noise_mean in ("zero", "unknown"):
        # One that is too short and one that is too long, with either mean where there is time.
        for size in (1e-30, 1e15) if THOROUGH else ({"zero": 1e-30, "unknown": 1e15}[noise_mean],):
            model = RobustPhaseRetrieval(init=size * x, noise_mean=noise_mean)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(A, y)
            assert np.isfinite(model.signal_).all()
            # A second opinion may find the signal all the same.
            if distance(model.signal_, x, relative=True) > 0.1:
                assert not model.converged_
                assert any(issubclass(w.category, ConvergenceWarning) for w in caught)
    for size in (1e-3, 1e3):
        assert distance(RobustPhaseRetrieval(init=size * x).fit(A, y).signal_, x, relative=True) < 0.05


def test_what_a_mask_hides_is_never_used():
    A, _, y = samples("real")
    hidden = np.arange(y.size) % 10 == 3
    spoilt_rows, spoilt = np.where(hidden[:, np.newaxis], 7.0, A), np.where(hidden, 50.0, y)
    masked_rows = np.ma.masked_array(spoilt_rows, np.broadcast_to(hidden[:, np.newaxis], A.shape))
    masked = np.ma.masked_array(spoilt, hidden)
    dropped = RobustPhaseRetrieval(nonfinite="drop").fit(A, np.where(hidden, np.nan, y))
    for rows, responses in ((A, masked), (masked_rows, y), (masked_rows, masked)):
        with pytest.raises(ValueError, match=r'NaN or infinite.*nonfinite="drop"'):
            RobustPhaseRetrieval().fit(rows, responses)
        with pytest.raises(ValueError, match=r'NaN or infinite.*nonfinite="drop"'):
            spectral_init(rows, responses)
        model = RobustPhaseRetrieval(nonfinite="drop").fit(rows, responses)
        np.testing.assert_allclose(model.signal_, dropped.signal_)
    # A mask that hides nothing changes nothing.
    np.testing.assert_array_equal(
        RobustPhaseRetrieval().fit(np.ma.masked_array(A), np.ma.masked_array(y)).signal_,
        RobustPhaseRetrieval().fit(A, y).signal_,
    )


def test_equal_rows_are_answered_with_a_warning_whatever_the_noise():
    # Of some of them nothing is left to search in for a second opinion: rows of one length are too frequent.
    for seed in (13, 15, 25, 28):
        rng = np.random.default_rng(seed)
        A, x = np.tile(rng.standard_normal(10), (200, 1)), rng.standard_normal(10)
        with pytest.warns(UserWarning, match="the model does not hold"):
            model = RobustPhaseRetrieval(0.1).fit(A, (A @ x) ** 2 + 0.1 * rng.standard_normal(200))
        assert not model.converged_
