"""Bad input is refused in our words, doubted by the check of the model, or answered rightly; never with a raw traceback."""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pytest

from robustphase import RobustPhaseRetrieval, distance

N, M = 8, 400


def samples():
    rng = np.random.default_rng(11)
    A, x = rng.standard_normal((M, N)), rng.standard_normal(N)
    return A, x, (A @ x) ** 2 + 0.05 * (x @ x) * rng.standard_normal(M)


def tenth(values, bad):
    """The values with every tenth replaced."""
    changed = values.copy()
    changed[::10] = bad
    return changed


#: What is passed, and what must come of it: words of the refusal, "doubted", or "right".
KINDS = {
    "zeros": (lambda A, y: (0 * A, y), "all entries of A are zero"),
    "equal rows": (lambda A, y: (np.repeat(A[:1], M, axis=0), y), "doubted"),
    "equal rows and responses": (lambda A, y: (np.repeat(A[:1], M, axis=0), np.full(M, y[0])), "doubted"),
    "two distinct rows": (lambda A, y: (A[np.arange(M) % 2], y[np.arange(M) % 2]), "doubted"),
    "a column of zeros": (lambda A, y: (A * (np.arange(N) != 3), y), "doubted"),
    "a column twice": (lambda A, y: (A[:, [0, 0, *range(2, N)]], y), "doubted"),
    "no rows": (lambda A, y: (A[:0], y[:0]), r"0 sample\(s\)|no rows|empty|at least"),
    "no columns": (lambda A, y: (A[:, :0], y), r"0 feature\(s\)|no columns|empty|at least"),
    "one row": (lambda A, y: (A[:1], y[:1]), "at least|1 sample"),
    "fewer rows than columns": (lambda A, y: (A[:5], y[:5]), "at least"),
    "transposed": (lambda A, y: (A.T, y), "transpose|responses|rows"),
    "one response too few": (lambda A, y: (A, y[:-1]), "399"),
    "responses in a row": (lambda A, y: (A, y[np.newaxis]), "400|shape|rows"),
    "three dimensions": (lambda A, y: (A[:, :, np.newaxis], y), "Expected 2D array, got 3D"),
    "one dimension": (lambda A, y: (A[:, 0], y), "Expected 2D array, got 1D"),
    "strings": (lambda A, y: (A.astype(str), y), "number|numeric|str"),
    "objects": (lambda A, y: (np.where(A > 2, None, A.astype(object)), y), "rows of A hold NaN"),
    "ragged lists": (lambda A, y: ([[1.0, 2.0], [3.0]], [1.0, 2.0]), "same length"),
    "dates": (lambda A, y: (A, np.arange(M).astype("datetime64[s]")), "date|number|numeric|datetime"),
    "responses of complex numbers": (lambda A, y: (A, y + 1j), "complex|real"),
    "NaN in A": (lambda A, y: (tenth(A, np.nan), y), "NaN"),
    "infinity in y": (lambda A, y: (A, tenth(y, np.inf)), "NaN or infinite|infinit"),
    "constant responses": (lambda A, y: (A, np.full(M, 2.0)), "doubted"),
    "responses of zero": (lambda A, y: (A, 0 * y), "doubted"),
    "responses below zero": (lambda A, y: (A, -y), "doubted"),
    "whole numbers that wrapped": (lambda A, y: (A, (2000 * y).astype(np.int64).astype(np.int8)), "doubted"),
    "1e150 in a tenth of the responses": (lambda A, y: (A, tenth(y, 1e150)), "right"),
    "1e200 in a tenth of the responses": (lambda A, y: (A, tenth(y, 1e200)), "right"),
    "1e150 in a tenth of the rows": (lambda A, y: (tenth(A, 1e150), y), "right"),
    "1e200 in a tenth of the rows": (lambda A, y: (tenth(A, 1e200), y), "right"),
    "whole numbers": (lambda A, y: (A, np.round(20 * y).astype(np.int32)), "right in other units"),
    "booleans": (lambda A, y: (A > 0, y), "doubted"),
}


def kinds(*outcomes):
    return [kind for kind, (_, outcome) in KINDS.items() if outcome in outcomes]


def fitted(kind):
    A, x, y = samples()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RobustPhaseRetrieval(contamination=0.15).fit(*KINDS[kind][0](A, y))
    assert not [one for one in caught if not issubclass(one.category, UserWarning)]
    return model, x, [str(one.message) for one in caught]


def test_what_cannot_be_fitted_is_refused_in_our_words(case):
    for kind in [kind for kind in KINDS if kind not in kinds("doubted", "right", "right in other units")]:
        with case(kind):
            with pytest.raises((ValueError, TypeError), match=KINDS[kind][1]) as refusal:
                fitted(kind)
            assert "robustphase" in traceback.extract_tb(refusal.value.__traceback__)[-1].filename


@pytest.mark.parametrize("kind", kinds("doubted"))
def test_what_does_not_determine_a_signal_is_doubted(kind):
    model, _, said = fitted(kind)
    assert not model.converged_
    assert not model.certificate_ < 1
    assert model.model_check_.severe
    assert any("Likely cause" in message for message in said)


@pytest.mark.parametrize("kind", kinds("right", "right in other units"))
def test_what_is_odd_but_fits_is_answered(kind):
    model, x, _ = fitted(kind)
    truth = x * np.sqrt(20) if "units" in KINDS[kind][1] else x
    assert distance(model.signal_, truth, relative=True) < 0.1
    assert model.converged_


def test_a_stream_of_batches_refuses_what_its_steps_would_leave_out(case):
    for told in [{"saturation": 4.0}, {"background": np.zeros(200)}, {"drift": "auto"}]:
        with case(told):
            rng = np.random.default_rng(0)
            A = rng.standard_normal((200, 4))
            model = RobustPhaseRetrieval(0.1, **told)
            with pytest.raises(ValueError, match=f"partial_fit knows additive noise only, and {next(iter(told))}="):
                model.partial_fit(A, A[:, 0] ** 2)
            assert not hasattr(model, "signal_")


@pytest.mark.parametrize("how", [{"step": "paper"}, {"batches": 4}])
def test_descents_refuse_readings_that_say_at_least_that(how):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 4))
    with pytest.raises(ValueError, match='step="newton" and batches=1'):
        RobustPhaseRetrieval(0.1, saturation=4.0, **how).fit(A, np.minimum(A[:, 0] ** 2, 4.0))
