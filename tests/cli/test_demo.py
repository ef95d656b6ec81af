"""The demo recovers its picture, and says who does not."""

from __future__ import annotations

import numpy as np
import pytest

import robustphase as rp
import robustphase.cli.demo as module
from robustphase.cli.demo_data import CONTAMINATION, PER_PIXEL, SIDE, forged_world, grin, sailing_boat, unit

from .conftest import leftovers


def test_the_table_has_ours_at_the_level_of_the_oracle_and_names_the_fooled(run, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RIVALS", {"wirtinger_flow": {"max_iter": 150}})
    told = run("demo").stdout
    rows = {line.split()[0]: line.split() for line in told.splitlines() if "%" in line}
    assert list(rows) == ["robustphase", "wirtinger_flow", "oracle"]
    assert float(rows["robustphase"][2]) <= 1.1
    assert " ".join(rows["robustphase"][4:]) == "as good as the oracle"
    assert " ".join(rows["wirtinger_flow"][4:]) == "fooled by the forgery"
    assert rows["oracle"][2] == "1"
    assert told.endswith(f"report: {tmp_path / 'robustphase-demo.html'}\n")
    page = (tmp_path / "robustphase-demo.html").read_text()
    assert "fooled by the forgery" in page
    assert 'data-method="robustphase"' in page
    assert not leftovers(tmp_path)


def test_a_report_that_cannot_be_written_is_refused_before_the_work(run, monkeypatch):
    def no_work(seed):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(module, "forged_world", no_work)
    assert "does not exist" in run("demo", "--report", "missing/demo.html", code=1).stderr


def test_the_rivals_are_baselines_of_the_library():
    assert set(module.RIVALS) <= set(rp.baselines.METHODS)


def test_the_adversary_stays_within_its_budget_and_hides_in_the_norms():
    world = forged_world(0)
    assert world.A.shape == (PER_PIXEL * SIDE**2, SIDE**2)
    assert world.touched.sum() == CONTAMINATION * world.y.size
    norms = np.linalg.norm(world.A, axis=1)
    # No cut on the norm would find the quiet majority: most of them lie within the range of the honest rows.
    low, high = np.quantile(norms[world.clean], (0.001, 0.999))
    assert np.mean((norms[world.touched] > low) & (norms[world.touched] < high)) > 0.7


def test_the_noise_has_the_moments_it_says():
    world = forged_world(1)
    noise = (world.y - (world.A @ world.truth) ** 2)[world.clean]
    assert np.mean(noise) == pytest.approx(world.noise_mean, abs=5 * world.noise_std / np.sqrt(noise.size))


def test_the_pictures_are_grey_and_have_norm_one_as_signals():
    for picture in (sailing_boat(SIDE), grin(SIDE)):
        assert picture.shape == (SIDE, SIDE)
        assert picture.min() >= 0
        assert picture.max() <= 1
        assert np.linalg.norm(unit(picture)) == pytest.approx(1)


def test_the_verdict_fits_the_answer(case):
    for signal, said in [
        (unit(sailing_boat(SIDE)), "as good as the oracle"),
        (-unit(sailing_boat(SIDE)) * 1.1, "recovered"),
        (unit(grin(SIDE)), "fooled by the forgery"),
        (np.eye(SIDE**2)[0], "lost"),
        (np.zeros(SIDE**2), "lost"),
        (np.full(SIDE**2, np.nan), "gave no answer"),
        (np.empty(0), "gave no answer"),
    ]:
        with case(said):
            outcome = module._judged("some_method", signal, 1.0, unit(sailing_boat(SIDE)), best=0.05)
            assert outcome.verdict == said


def test_a_rival_that_raises_has_no_answer_but_ours_must_not():
    def broken():
        raise np.linalg.LinAlgError("did not converge")

    assert module._timed(broken, strict=False)[0].size == 0
    with pytest.raises(np.linalg.LinAlgError):
        module._timed(broken, strict=True)
