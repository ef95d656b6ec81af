"""Operators that see some unknowns far better than others: a small ptychographic scan with misplaced frames."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.testing import assert_array_equal
from scipy.ndimage import gaussian_filter
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from tests.effort import seeds

from robustphase import RobustPhaseRetrieval, distance
from robustphase.simulate import Ptychography

SIDE, PATCH, STEP, FRAMES_WRONG = 44, 16, 4, 6


def scan(seed=0, *, light=2e3):
    """A weak object, a curved Gaussian probe, counts; the true scan, the one on file, readings, and which frames are wrong."""
    rng = np.random.default_rng(seed)
    waves = [gaussian_filter(rng.standard_normal((SIDE, SIDE)), 1.5) for _ in range(2)]
    picture = (1 - 0.3 * np.abs(waves[0]) / np.abs(waves[0]).max()) * np.exp(1j * waves[1] / waves[1].std() / 2)
    along = np.arange(PATCH) - (PATCH - 1) / 2
    square = along[:, None] ** 2 + along**2
    probe = np.sqrt(light) * np.exp(-square / 18 + 0.15j * square)
    corners = np.stack(np.meshgrid(*[np.arange(0, SIDE - PATCH + 1, STEP)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    true = np.clip(corners + rng.integers(-1, 2, corners.shape), 0, SIDE - PATCH)
    inner = np.flatnonzero(((true > 3) & (true < SIDE - PATCH - 3)).all(axis=1))
    wrong = np.zeros(len(true), bool)
    wrong[rng.choice(inner, FRAMES_WRONG, replace=False)] = True
    filed = true + wrong[:, None] * rng.choice([-3, 3], (len(true), 2))
    right, filed_scan = (Ptychography(probe, places, (SIDE, SIDE)) for places in (true, filed))
    readings = rng.poisson(np.abs(right @ picture.ravel()) ** 2).astype(float)
    return picture.ravel(), filed_scan, readings, wrong


def fitted(operator, readings, **arguments):
    groups = arguments.pop("groups", None)
    with warnings.catch_warnings():
        # How the model check takes photon noise and neighbouring pixels is another matter.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RobustPhaseRetrieval(0.2, **arguments).fit(operator, readings, groups=groups)


def kept_frames(operator, keep):
    return Ptychography(operator.probe, operator.positions[keep], operator.object_shape)


def test_misplaced_frames_are_found_and_cost_little():
    ratios = []
    for seed in seeds(1, 3):
        picture, operator, readings, wrong = scan(seed)
        grouped = fitted(operator, readings, groups=operator.frames)
        told = fitted(kept_frames(operator, ~wrong), readings.reshape(len(wrong), -1)[~wrong].ravel())
        plain = fitted(operator, readings)
        lit = ~grouped.unseen_
        ours, best, without = (
            distance(model.signal_[lit], picture[lit], relative=True) for model in (grouped, told, plain)
        )
        ratios.append(ours / best)
        assert ours < without
        assert roc_auc_score(wrong, -grouped.group_weights_) > 0.99
        assert grouped.flag_groups()[~wrong].mean() < 0.1
    assert np.mean(ratios) < 1.2, ratios


def test_unknowns_in_the_dark_are_named():
    _, operator, readings, _ = scan()
    model = fitted(operator, readings)
    light = operator.column_energies
    assert model.unseen_.shape == (SIDE**2,)
    assert model.unseen_[light == light.min()].all()
    assert not model.unseen_[light > light.mean()].any()


def test_a_start_may_be_given():
    picture, operator, readings, _ = scan()
    model = fitted(operator, readings, groups=operator.frames, init=picture)
    assert_array_equal(np.abs(model.initial_signal_ - picture) < 1e-9, True)
