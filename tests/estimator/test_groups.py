"""Samples that are good or bad together: labelled groups, and rows behind many signals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.simulate import draw_noise

N, GROUPS, SIZE = 30, 50, 30


def rotated(seed=0, *, correlation=0.7, bad=0.2, noise=0.5):
    """Groups of samples, some of which were measured with rows that are only correlated with those on file; in random order."""
    rng = np.random.default_rng(seed)
    m = GROUPS * SIZE
    x = rng.standard_normal(N)
    x /= np.linalg.norm(x)
    shown, other = rng.standard_normal((2, m, N))
    y = (shown @ x) ** 2 + draw_noise("student", m, std=noise, seed=rng)
    labels = rng.permutation(np.repeat(np.arange(GROUPS), SIZE))
    wrong = rng.choice(GROUPS, round(bad * GROUPS), replace=False)
    touched = np.isin(labels, wrong)
    A = shown.copy()
    A[touched] = correlation * shown[touched] + np.sqrt(1 - correlation**2) * other[touched]
    return A, y, labels, touched, x


@pytest.fixture(scope="module")
def labelled():
    """A fit to groups of which some are bad, with its data."""
    A, y, labels, _, _ = rotated()
    return A, y, labels, RobustPhaseRetrieval(0.2).fit(A, y, groups=labels)


def test_a_fit_with_groups_is_as_good_as_one_that_is_told_the_good_groups():
    ratios, areas = [], []
    for seed in seeds(4, 6):
        A, y, labels, touched, x = rotated(seed)
        model = RobustPhaseRetrieval(0.2).fit(A, y, groups=labels)
        told = RobustPhaseRetrieval(0.0).fit(A[~touched], y[~touched])
        ratios.append(distance(model.signal_, x) / distance(told.signal_, x))
        areas.append(roc_auc_score(touched, -model.weights_))
        assert model.group_weights_.shape == (GROUPS,)
        assert set(np.unique(labels[touched])) <= set(model.groups_[model.flag_groups()])
    assert np.mean(ratios) < 1.04, ratios
    assert min(areas) > 0.97, areas


def test_without_bad_groups_nothing_changes():
    A, y, labels, _, _ = rotated(bad=0.0)
    plain, grouped = RobustPhaseRetrieval(0.1).fit(A, y), RobustPhaseRetrieval(0.1).fit(A, y, groups=labels)
    assert_array_equal(grouped.signal_, plain.signal_)
    assert_array_equal(grouped.weights_, plain.weights_)
    assert not grouped.group_evidence_.found
    assert (grouped.group_weights_ > 0.9).all()
    assert not grouped.flag_groups().any()


def test_single_bad_samples_are_found_besides_bad_groups():
    A, y, labels, touched, x = rotated(1)
    rng = np.random.default_rng(2)
    single = rng.choice(np.flatnonzero(~touched), 60, replace=False)
    y[single] += 8.0
    model = RobustPhaseRetrieval(0.25).fit(A, y, groups=labels)
    assert model.flag_samples()[single].mean() > 0.95
    assert model.flag_samples()[touched].mean() > 0.95
    assert model.flag_groups()[np.unique(labels[~touched])].mean() < 0.2
    assert distance(model.signal_, x) < 0.1


def test_noisier_groups_are_not_bad_where_groups_differ_anyway():
    rng = np.random.default_rng(3)
    A, _, labels, _, x = rotated(bad=0.0)
    widths = np.exp(0.4 * rng.standard_normal(GROUPS))
    y = (A @ x) ** 2 + 0.2 * widths[labels] * rng.standard_normal(labels.size)
    model = RobustPhaseRetrieval(0.1).fit(A, y, groups=labels)
    assert model.flag_groups().mean() <= 0.1


@pytest.mark.parametrize(
    "named",
    [
        lambda labels: [f"frame {label}" for label in labels],
        lambda labels: pd.Series(labels).astype("category"),
        lambda labels: [(label, "north") for label in labels],
        lambda labels: labels.astype(np.int8),
        lambda labels: labels[:, None],
        lambda labels: pd.DataFrame({"frame": labels}),
        lambda labels: labels.astype(float),
        lambda labels: pytest.importorskip("dask.array").from_array(labels, chunks=400),
        lambda labels: np.datetime64("2026-01-01") + labels,
    ],
    ids=["strings", "categories", "pairs", "bytes", "a column", "a frame", "whole numbers", "dask", "days"],
)
def test_labels_may_be_anything_that_can_be_told_apart(named, labelled):
    A, y, labels, expected = labelled
    found = RobustPhaseRetrieval(0.2).fit(A, y, groups=named(labels))
    assert_allclose(found.signal_, expected.signal_, rtol=1e-9, atol=1e-12)
    assert_allclose(np.sort(found.group_weights_), np.sort(expected.group_weights_))


def test_two_kinds_of_groups_are_judged_side_by_side():
    rng = np.random.default_rng(4)
    A, _, _, _, x = rotated()
    frames, pixels = np.repeat(np.arange(GROUPS), SIZE), np.tile(np.arange(SIZE), GROUPS)
    y = (A @ x) ** 2 + draw_noise("student", frames.size, std=0.3, seed=rng)
    wrong = (frames % 10 == 3) | (pixels == 7)
    y[wrong] = rng.permutation(y[wrong])
    model = RobustPhaseRetrieval(0.2).fit(A, y, groups=np.stack((frames, pixels), axis=1))
    bad_frames, bad_pixels = model.flag_groups()
    assert_array_equal(np.flatnonzero(bad_frames), np.arange(3, GROUPS, 10))
    assert_array_equal(np.flatnonzero(bad_pixels), [7])


def test_bad_labels_are_refused(case):
    A, y, *_ = rotated()
    for groups, error, what in [
        (np.arange(10), ValueError, "1500 rows but groups has 10 labels"),
        (np.zeros(1500, int), ValueError, "a single group is compared with nothing"),
        (np.arange(1500), ValueError, "no two samples share a group"),
        (
            np.where(np.arange(1500) == 5, np.nan, np.arange(1500) % 7),
            ValueError,
            r"1 labels .* missing \(first: row 5\)",
        ),
        ([None, *(["a", "b"] * 749), "a"], ValueError, "missing"),
        (np.zeros((1500, 2, 2)), ValueError, "shape"),
        (np.arange(1500) % 3 * 1j, TypeError, "complex"),
        ([{"a": 1}] * 1500, TypeError, "cannot be told apart"),
        ("frames", TypeError, "one label per row"),
        ({"frame": np.arange(1500) % 7}, TypeError, "one label per row of A, got dict"),
        (7, TypeError, "one label per row of A, got int"),
        (np.arange(1500) % 7 + 0.5, ValueError, r"1500 labels .* fraction \(first: 0.5 in row 0\)"),
        ([0.25, *(["a", "b"] * 749), "a"], ValueError, r"1 labels .* fraction \(first: 0.25 in row 0\)"),
        (np.ma.masked_equal(np.arange(1500) % 7, 3), ValueError, r"214 labels .* missing \(first: row 3\)"),
        (pd.Series(np.arange(1500) % 7).astype("Int64").replace(3, pd.NA), ValueError, r"missing \(first: row 3\)"),
        (
            np.stack((np.arange(1500) % 7, np.zeros(1500)), axis=1),
            ValueError,
            "all 1500 labels of column 1 of groups are",
        ),
        ([[1, 2], [3]] * 750, ValueError, "rows of different lengths"),
        (np.arange(1500)[np.newaxis] % 7, ValueError, "column 0 of groups has 1 labels"),
    ]:
        with case(what), pytest.raises(error, match=what):
            RobustPhaseRetrieval(0.1).fit(A, y, groups=groups)


def test_groups_are_refused_where_nothing_weighs_them(case):
    for parameters in [{"step": "paper"}, {"batches": 2}, {"polish": False}]:
        with case(parameters):
            A, y, labels, *_ = rotated()
            with pytest.raises(ValueError, match="groups are weighed by the likelihood fit"):
                RobustPhaseRetrieval(0.1, **parameters).fit(A, y, groups=labels)


def test_a_fit_without_groups_has_none_to_flag():
    A, y, labels, *_ = rotated()
    model = RobustPhaseRetrieval(0.2).fit(A, y, groups=labels).fit(A, y)
    assert not hasattr(model, "group_weights_")
    with pytest.raises(ValueError, match="knew of no groups"):
        model.flag_groups()


def patterns(seed, *, p=60, m=400, n=24, noise=0.3, wrong=0.05, spread=1.2):
    """Signals behind phase patterns, part of which were shown with phases that are off."""
    rng = np.random.default_rng(seed)
    shown = np.exp(2j * np.pi * rng.random((m, n)))
    X = (rng.standard_normal((n, p)) + 1j * rng.standard_normal((n, p))) / np.sqrt(2 * n)
    Y = np.abs(shown @ X) ** 2 + draw_noise("student", (m, p), std=noise, seed=rng)
    bad = np.isin(np.arange(m), rng.choice(m, round(wrong * m), replace=False))
    A = shown.copy()
    A[bad] *= np.exp(1j * rng.uniform(-spread, spread, (int(bad.sum()), n)))
    return A, Y, X, bad


def test_a_wrong_row_is_found_by_all_signals_together():
    for seed in seeds(1, 2):
        A, Y, X, bad = patterns(seed)
        model = RobustPhaseRetrieval(0.1).fit(A, Y)
        told = RobustPhaseRetrieval(0.1).fit(A[~bad], Y[~bad])
        ours, best = (
            np.mean([distance(one, truth) for one, truth in zip(fit.signal_, X.T, strict=True)])
            for fit in (model, told)
        )
        assert ours < 1.03 * best
        assert roc_auc_score(bad, -model.row_weights_) > 0.999
        assert model.row_weights_.shape == bad.shape


def test_rows_that_are_right_keep_their_weight():
    for p in (3, 20):
        A, Y, _, _ = patterns(5, p=p, wrong=0.0)
        assert_array_equal(RobustPhaseRetrieval(0.1).fit(A, Y).row_weights_, 1.0)


@pytest.mark.parametrize("where", ["disk", "dask"])
def test_groups_are_judged_alike_wherever_the_rows_are(where, tmp_path, labelled):
    A, y, labels, expected = labelled
    if where == "disk":
        np.save(tmp_path / "A.npy", A)
        rows = np.load(tmp_path / "A.npy", mmap_mode="r")
    else:
        rows = pytest.importorskip("dask.array").from_array(A, chunks=(400, -1))
    found = RobustPhaseRetrieval(0.2).fit(rows, y, groups=labels)
    assert_allclose(found.signal_, expected.signal_, rtol=1e-6, atol=1e-8)
    assert_allclose(found.group_weights_, expected.group_weights_, atol=1e-6)
    assert_array_equal(found.flag_groups(), expected.flag_groups())
