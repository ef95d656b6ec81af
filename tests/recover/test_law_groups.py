"""Groups of readings under laws whose noise depends on the signal."""

from __future__ import annotations

import numpy as np
import pytest

from robustphase import RobustPhaseRetrieval, distance


def counted(p, *, mean=2.25, n=10, m=700, seed=3):
    rng = np.random.default_rng(seed)
    A, signals = rng.standard_normal((m, n)), np.sqrt(mean) * rng.standard_normal((n, p)) / np.sqrt(n)
    return A, rng.poisson((A @ signals) ** 2 + 0.2).astype(float), signals


def test_rows_of_many_light_and_clean_counts_are_good():
    """Their residuals are wider where their energies are larger, which is no fault of theirs."""
    A, y, signals = counted(8)
    model = RobustPhaseRetrieval(0.05).fit(A, y)
    assert model.noise_model_.kind == "poisson"
    assert np.mean(model.row_weights_ < 0.5) < 0.01
    errors = [distance(x, truth, relative=True) for x, truth in zip(model.signal_, signals.T, strict=True)]
    assert max(errors) < 0.12


# Wrong rows are part of what the checks of the model may remark on.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_wrong_rows_behind_many_counts_are_found():
    A, y, _ = counted(12)
    rng = np.random.default_rng(5)
    bad = rng.choice(700, 35, replace=False)
    A[bad] = rng.standard_normal((35, 10))
    model = RobustPhaseRetrieval(0.1).fit(A, y)
    good = np.delete(model.row_weights_, bad)
    assert good.mean() > 0.98
    assert model.row_weights_[bad].mean() < 0.6


def test_frames_of_counts_that_were_mixed_up_are_found():
    A, y, _ = counted(1, mean=4.0)
    frames = np.repeat(np.arange(35), 20)
    y = y[:, 0]
    wrong = frames < 2
    y[wrong] = np.random.default_rng(6).permutation(y[wrong])
    model = RobustPhaseRetrieval(0.1).fit(A, y, groups=frames)
    assert model.noise_model_.kind == "poisson"
    assert (model.group_weights_[:2] < 0.1).all()
    assert (model.group_weights_[2:] > 0.5).all()


def test_frames_of_a_camera_that_were_mixed_up_are_found():
    """Shot noise makes bright frames noisier than dark ones; only frames whose readings are in the wrong order are bad."""
    rng = np.random.default_rng(7)
    A, x = rng.standard_normal((900, 10)), rng.standard_normal(10)
    frames = np.repeat(np.arange(30), 30)
    A = A * np.where(frames % 2, 1.3, 0.7)[:, None]
    energies = 400 * (A @ x) ** 2
    y = energies + np.sqrt(16 + 6.0 * energies) * rng.standard_normal(900)
    wrong = np.isin(frames, (3, 4))
    y[wrong] = rng.permutation(y[wrong])
    model = RobustPhaseRetrieval(0.1, whiten=False).fit(A, y, groups=frames)
    assert model.noise_model_.kind == "variance"
    assert (model.group_weights_[[3, 4]] < 0.1).all()
    assert (np.delete(model.group_weights_, [3, 4]) > 0.5).all()
