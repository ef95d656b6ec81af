"""Bad input is refused with the argument, the value and the remedy."""

from __future__ import annotations

import numpy as np
import pytest

from robustphase.baselines import wirtinger_flow
from robustphase.rows import as_source, project
from robustphase.validation import check_choice, check_contamination, check_fraction, check_samples


@pytest.fixture
def good(rng):
    A = rng.standard_normal((40, 5))
    return A, (A @ np.ones(5)) ** 2


def with_entry(array, where, value):
    changed = array.copy()
    changed[where] = value
    return changed


def test_unusable_entries_are_refused_by_default_and_dropped_on_request(good, case):
    A, y = good
    for value in (np.nan, np.inf, -np.inf):
        with case(value):
            with pytest.raises(ValueError, match=r'1 rows of A hold NaN.*first: row 17.*nonfinite="drop"'):
                check_samples(with_entry(A, (17, 2), value), y)
            with pytest.raises(ValueError, match=r"1 responses of y hold NaN.*first: row 3"):
                check_samples(A, with_entry(y, 3, value))
            samples = check_samples(with_entry(A, (17, 2), value), with_entry(y, 3, value), nonfinite="drop")
            assert list(np.flatnonzero(samples.dropped)) == [3, 17]
            assert np.isfinite(project(samples.source, np.ones(5))).all()
            assert samples.responses[3] == 0


def test_finite_numbers_of_any_size_are_dropped_without_asking(good):
    A, y = good
    for value in (1e40, -1e150, 1e308):
        for nonfinite in ("raise", "drop"):
            samples = check_samples(with_entry(A, (17, 2), value), with_entry(y, 3, value), nonfinite=nonfinite)
            assert list(np.flatnonzero(samples.dropped)) == [3, 17]
            assert np.abs(project(samples.source, np.ones(5))).max() < 100
            assert samples.responses[3] == 0
    single = check_samples(with_entry(A.astype(np.float32), (17, 2), 1e30), y)
    assert list(np.flatnonzero(single.dropped)) == [17]
    several = check_samples(A, np.stack((y, with_entry(y, 3, 1e200)), axis=1), many=True)
    assert [list(column) for column in np.argwhere(several.dropped)] == [[3, 1]]


def test_the_error_about_nan_counts_no_huge_numbers(good):
    A, y = good
    with pytest.raises(ValueError, match=r"1 rows of A hold NaN or infinite entries \(first: row 17\)"):
        check_samples(with_entry(with_entry(A, (17, 2), np.nan), (3, 3), 1e200), y)


def test_where_most_numbers_are_huge_the_error_names_the_unit(good):
    A, y = good
    for nonfinite in ("raise", "drop"):
        with pytest.raises(ValueError, match=r"40 of 40 rows of A are larger than.*Divide A by 1e\+99\.|by 1e\+100\."):
            check_samples(A * 1e100, y, nonfinite=nonfinite)
        with pytest.raises(ValueError, match=r"rows of A are larger than 1\.8e\+17.*Divide A by"):
            check_samples((A * 1e30).astype(np.float32), y, nonfinite=nonfinite)
        with pytest.raises(ValueError, match=r"responses of y are larger than.*Divide y by 1e\+20\d\. The signal"):
            check_samples(A, 1e200 * (1 + y), nonfinite=nonfinite)
    # NaN among them say nothing of the scale.
    halves = np.where(np.arange(40)[:, None] < 30, np.nan, A)
    assert check_samples(with_entry(halves, (39, 0), 1e200), y, nonfinite="drop").dropped.sum() == 31


def test_malformed_samples_are_explained(case, good):
    for change, error, message in [
        (lambda A, y: (A[0], y), ValueError, r"A must be two-dimensional .*got shape \(5,\).*reshape"),
        (lambda A, y: (A[:, :, None], y), ValueError, r"A must be two-dimensional"),
        (lambda A, y: (A[:0], y[:0]), ValueError, r"A is empty: shape \(0, 5\)"),
        (lambda A, y: (A[:, :0], y), ValueError, r"A is empty"),
        (lambda A, y: (A.astype(object), y), TypeError, r"A must hold numbers, got dtype object.*astype"),
        (lambda A, y: (A.astype(str), y), TypeError, r"A must hold numbers"),
        (
            lambda A, y: (A.T, y[:5]),
            ValueError,
            r"A has 5 rows and 40 columns: fewer samples than unknowns.*transposed",
        ),
        (lambda A, y: (A, y[:-1]), ValueError, r"A has 40 rows but y has 39 responses"),
        (lambda A, y: (A, np.stack((y, y), 1)), ValueError, r"y must be one-dimensional.*\(40, 2\)"),
        (lambda A, y: (A, y.astype(object)), TypeError, r"y must hold numbers, got dtype object"),
        (lambda A, y: (A, y + 1j), ValueError, r"y holds complex numbers.*np.abs"),
        (lambda A, y: (A * np.nan, y), ValueError, r"40 rows of A"),
    ]:
        with case(message):
            for entry_point in (check_samples, wirtinger_flow):
                with pytest.raises(error, match=message):
                    entry_point(*change(*good))


def test_nothing_left_after_dropping_is_an_error(good):
    A, y = good
    with pytest.raises(ValueError, match="nothing is left"):
        check_samples(A * np.nan, y, nonfinite="drop")


def test_contamination_outside_its_range_is_refused(case):
    for value in (-0.1, 0.5, 0.7, 5, np.nan, np.inf):
        with case(value), pytest.raises(ValueError, match=r"contamination must be a number in \[0, 0.5\), got"):
            check_contamination(value)


def test_contamination_given_in_percent_gets_a_hint():
    with pytest.raises(ValueError, match=r"Did you mean 0.05 \(5 percent\)"):
        check_contamination(5)


def test_contamination_of_the_wrong_type_is_refused(case):
    for value in ("0.1", None, True, [0.1], "auto"):
        with case(value), pytest.raises(TypeError, match="contamination must be a number"):
            check_contamination(value)


def test_contamination_may_be_auto_where_allowed():
    assert check_contamination("auto", allow_auto=True) == "auto"
    assert check_contamination(np.float32(0.25)) == 0.25
    with pytest.raises(ValueError, match='or "auto"'):
        check_contamination(0.6, allow_auto=True)


def test_words_and_fractions_are_checked():
    with pytest.raises(ValueError, match=r"nonfinite must be one of 'raise', 'drop', got 'keep'"):
        check_choice("nonfinite", "keep", ("raise", "drop"))
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1, got 0"):
        check_fraction("delta", 0)
    with pytest.raises(TypeError, match="delta must be a number"):
        check_fraction("delta", "small")
    assert check_fraction("delta", 0.01) == 0.01


def test_lists_and_single_column_responses_are_welcome(good):
    A, y = good
    assert check_samples(A.tolist(), y[:, None].tolist()).responses.shape == (40,)
    assert as_source(as_source(A)).shape == (40, 5)
