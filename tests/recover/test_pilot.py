"""Very many samples: the answer of some of them, fitted to all, is as good as that of a search of all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.effort import seeds

import robustphase as rp
from robustphase.constants import varied
from robustphase.recover import pilot as module
from robustphase.recover.pilot import PILOT, pilot_rows, pilot_samples
from robustphase.rows import MemoryRows
from robustphase.validation import check_samples


@pytest.fixture
def small_pilots():
    """Pilots of a size that tests can afford."""
    with varied(PILOT, fewest=2000):
        yield


class Data(NamedTuple):
    """Samples without a truth."""

    A: Any
    y: Any


def fits(world, monkeypatch, settings):
    """The fit with a pilot, and that without."""
    settings = {"contamination": 0.1} | settings
    model = rp.RobustPhaseRetrieval(**settings).fit(world.A, world.y)
    with monkeypatch.context() as patch:
        patch.setattr(module, "pilot_rows", lambda *_: None)
        whole = rp.RobustPhaseRetrieval(**settings).fit(world.A, world.y)
    return model, whole


def stages(model):
    return [record.stage for record in model.history_]


@pytest.mark.usefixtures("small_pilots")
@pytest.mark.parametrize(
    ("attack", "noise", "settings"),
    [
        ("none", "gaussian", {}),
        ("leverage", "student", {}),
        ("cloud", "gaussian", {}),
        ("decoy", "student", {"contamination": "auto"}),
        ("inflated_rows", "lognormal", {"noise_mean": "unknown"}),
    ],
)
def test_a_pilot_costs_no_accuracy(attack, noise, settings, monkeypatch):
    for seed in seeds(2, 3):
        world = rp.simulate.make_world(n=20, m=12000, contamination=0.1, attack=attack, noise=noise, seed=seed)
        model, whole = fits(world, monkeypatch, settings)
        assert "all samples" in stages(model), f"seed {seed}"
        assert "all samples" not in stages(whole), f"seed {seed}"
        here, there = (rp.distance(one.signal_, world.truth, relative=True) for one in (model, whole))
        # Both maximise the likelihood; the density of bad responses and the screen are the pilot's own.
        assert rp.distance(model.signal_, whole.signal_, relative=True) < 0.35 * there, f"seed {seed}"
        assert here < 1.2 * there, f"seed {seed}"
        assert np.mean(model.flag_samples() != whole.flag_samples()) < 0.02, f"seed {seed}"


@pytest.mark.usefixtures("small_pilots")
@pytest.mark.parametrize(("dtype", "field"), [(np.complex128, "auto"), (np.float64, "complex"), (np.float32, "auto")])
def test_pilots_serve_both_fields_and_both_precisions(dtype, field, monkeypatch):
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((12000, 15)), rng.standard_normal(15)
    if dtype == np.complex128:
        A = (A + 1j * rng.standard_normal(A.shape)) / np.sqrt(2)
    if dtype == np.complex128 or field == "complex":
        x = (x + 1j * rng.standard_normal(15)) / np.sqrt(2)
    A = A.astype(dtype)
    y = np.abs(A @ x) ** 2 + 0.5 * rng.standard_normal(12000)
    y[:800] = 40 * rng.random(800)
    model, whole = fits(Data(A, y), monkeypatch, {"field": field})
    assert "all samples" in stages(model)
    error = rp.distance(whole.signal_, x, relative=True)
    assert rp.distance(model.signal_, whole.signal_, relative=True) < 0.35 * error
    assert model.converged_


@pytest.mark.usefixtures("small_pilots")
def test_weights_of_the_rows_are_those_that_the_rule_gives_them():
    """A cloud of rows is found behind some of the samples, and weighed down among all."""
    world = rp.simulate.make_world(n=20, m=12000, contamination=0.1, attack="cloud", seed=0)
    model = rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)
    assert "all samples" in stages(model)
    assert model.covariate_weights_[~world.touched].mean() > 0.95
    assert model.covariate_weights_[world.touched].mean() < 0.5
    assert model.flag_samples()[world.touched].mean() > 0.9


@pytest.mark.usefixtures("small_pilots")
def test_where_the_pilot_is_in_doubt_all_samples_are_searched():
    """Noise that grows with the signal is under a law of its own, and a faint signal may be another one."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((12000, 10)), rng.standard_normal(10)
    expected = 4 * (A @ x) ** 2 / (x @ x)
    for y in (rng.poisson(expected).astype(float), expected / 4 + 3 * rng.standard_normal(12000)):
        model = rp.RobustPhaseRetrieval(0.05).fit(A, y)
        assert "all samples" not in stages(model)
        assert model.converged_
        assert rp.distance(model.signal_ / np.linalg.norm(model.signal_), x / np.linalg.norm(x)) < 0.25


def test_few_samples_have_no_pilot_and_many_a_random_one():
    assert pilot_rows(2 * PILOT.fewest, 10, 0) is None
    assert pilot_rows(10**6, 10**4, 0) is None
    chosen = pilot_rows(10**6, 10, 0)
    assert chosen.size == PILOT.fewest
    assert (np.diff(chosen) > 0).all()
    assert chosen.max() > 0.99 * 10**6
    assert_array_equal(chosen, pilot_rows(10**6, 10, 0))
    assert not np.array_equal(chosen, pilot_rows(10**6, 10, 1))


def test_a_pilot_holds_the_samples_it_says(rng):
    A, y = rng.standard_normal((9000, 4)), rng.random(9000)
    with varied(PILOT, fewest=1000):
        samples = check_samples(MemoryRows(A), y)
        chosen = pilot_rows(9000, 4, 3)
        with pilot_samples(samples, 3) as pilot:
            assert_array_equal(pilot.source.array, A[chosen])
            assert_array_equal(pilot.responses, y[chosen])
    with varied(PILOT, fewest=1000, most_bytes=1000), pilot_samples(samples, 3) as pilot:
        assert pilot is None


@pytest.mark.usefixtures("small_pilots")
def test_a_pilot_does_not_depend_on_how_rows_are_read(tmp_path):
    world = rp.simulate.make_world(n=10, m=12000, contamination=0.1, attack="decoy", seed=1)
    np.save(tmp_path / "A.npy", world.A)
    here = rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)
    there = rp.RobustPhaseRetrieval(0.1).fit(tmp_path / "A.npy", world.y)
    assert "all samples" in stages(there)
    assert_allclose(there.signal_, here.signal_, atol=1e-10)


def test_a_pilot_that_memory_has_no_room_for_is_kept_on_disk(tmp_path, monkeypatch):
    world = rp.simulate.make_world(n=10, m=12000, contamination=0.1, attack="decoy", seed=1)
    np.save(tmp_path / "A.npy", world.A)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with varied(PILOT, fewest=2000):
        here = rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)
        with varied(PILOT, most_bytes=1):
            there = rp.RobustPhaseRetrieval(0.1).fit(tmp_path / "A.npy", world.y)
            in_memory = rp.RobustPhaseRetrieval(0.1).fit(world.A, world.y)
    assert "all samples" in stages(there)
    assert_allclose(there.signal_, here.signal_, atol=1e-10)
    assert there.history_[-1].passes == here.history_[-1].passes
    # What is in memory is not written to a disk.
    assert "all samples" not in stages(in_memory)
    assert not list((tmp_path / "temporary").iterdir())
