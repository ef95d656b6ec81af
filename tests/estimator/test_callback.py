"""A callback is told of every pass and may end a fit; what was found so far is kept."""

from __future__ import annotations

import io

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import robustphase as rp
from robustphase.estimator.progress import LiveLine, Progress


@pytest.fixture(scope="module")
def world():
    return rp.simulate.make_world(n=20, m=1500, contamination=0.1, attack="decoy", seed=2)


@pytest.mark.parametrize("settings", [{}, {"step": "paper", "max_iter": 8}, {"whiten": True, "nonfinite": "drop"}])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_that_only_looks_changes_nothing_and_hears_of_every_pass(world, settings):
    heard: list[Progress] = []
    plain = rp.RobustPhaseRetrieval(**settings).fit(world.A, world.y)
    watched = rp.RobustPhaseRetrieval(callback=heard.append, **settings).fit(world.A, world.y)
    assert_array_equal(watched.signal_, plain.signal_)
    assert_array_equal(watched.weights_, plain.weights_)
    assert [progress.passes for progress in heard] == list(range(1, len(heard) + 1))
    assert len(heard) >= watched.history_[-1].passes
    seconds = [progress.seconds for progress in heard]
    assert seconds == sorted(seconds)
    assert heard[0].stage == "start"
    assert heard[-1].stage in ("certificate", "descent")


def test_what_is_left_is_told_for_the_default_engine_only(world):
    heard: list[Progress] = []
    rp.RobustPhaseRetrieval(callback=heard.append).fit(world.A, world.y)
    assert heard[0].seconds_left is None
    low, high = heard[10].seconds_left
    assert 0 < low < high
    assert "usually" in str(heard[10])
    assert "start: 1 passes" in str(heard[0])


@pytest.mark.parametrize("when", [1, 12, 20, 28])
def test_returning_true_ends_the_fit_with_the_best_answer_so_far(world, when):
    heard: list[Progress] = []

    def stop(progress: Progress) -> bool:
        heard.append(progress)
        return progress.passes >= when

    model = rp.RobustPhaseRetrieval(callback=stop)
    with pytest.warns(ConvergenceWarning, match="callback ended the fit"):
        model.fit(world.A, world.y)
    assert len(heard) == when, "asked again after it had said that it is enough"
    assert model.converged_ is False
    assert model.certificate_ == np.inf
    assert model.history_[-1].stage == "stopped"
    assert model.flag_samples().mean() == pytest.approx(0.1, abs=0.01)
    # A start is already close to the signal, and later answers are closer.
    assert rp.distance(model.signal_, world.truth, relative=True) < 0.6
    assert model.predict(world.A).shape == (1500,)
    with pytest.raises(ValueError, match="standard errors need"):
        model.standard_errors(world.A, world.y)
    again = model.set_params(callback=None).fit(world.A, world.y)
    assert again.converged_


def test_answers_get_better_the_later_the_fit_is_ended(world):
    def error(when: int) -> float:
        with pytest.warns(ConvergenceWarning):
            model = rp.RobustPhaseRetrieval(callback=lambda progress: progress.passes >= when).fit(world.A, world.y)
        return rp.distance(model.signal_, world.truth, relative=True)

    last = len(rp.RobustPhaseRetrieval().fit(world.A, world.y).history_)
    assert last > 3
    full = rp.distance(rp.RobustPhaseRetrieval().fit(world.A, world.y).signal_, world.truth, relative=True)
    passes = rp.RobustPhaseRetrieval().fit(world.A, world.y).history_[-1].passes
    assert error(passes - 1) <= 1.5 * full
    assert error(passes - 1) < error(1)


def test_what_a_callback_raises_is_raised_and_the_answer_is_kept(world):
    class EnoughError(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.stage == "likelihood":
            raise EnoughError

    model = rp.RobustPhaseRetrieval(callback=stop)
    with pytest.raises(EnoughError):
        model.fit(world.A, world.y)
    assert model.converged_ is False
    assert rp.distance(model.signal_, world.truth, relative=True) < 0.6


def test_an_error_before_there_is_an_answer_is_only_raised(world):
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    model = rp.RobustPhaseRetrieval(callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(world.A, world.y)
    assert not hasattr(model, "signal_")


def test_several_signals_groups_and_operators_can_be_ended_too(world):
    rng = np.random.default_rng(0)
    signals = rng.standard_normal((3, 20))
    Y = np.abs(world.A @ signals.T) ** 2 + 0.1 * rng.standard_normal((1500, 3))
    ending = rp.RobustPhaseRetrieval(callback=lambda progress: progress.stage in ("likelihood", "certificate"))
    with pytest.warns(ConvergenceWarning, match="callback ended"):
        model = clone(ending).fit(world.A, Y)
    assert model.signal_.shape == (3, 20)
    assert model.row_weights_.shape == (1500,)
    with pytest.warns(ConvergenceWarning, match="callback ended"):
        model = clone(ending).fit(world.A, world.y, groups=np.arange(1500) // 10)
    assert model.group_weights_.shape == (150,)
    with pytest.warns(ConvergenceWarning, match="callback ended"):
        model = clone(ending).fit(aslinearoperator(3.0 * world.A), 9.0 * world.y)
    assert rp.distance(model.signal_, world.truth, relative=True) < 0.6


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_live_line_is_for_terminals_and_goes_away():
    terminal, plain = Terminal(), io.StringIO()
    for file in (terminal, plain):
        line = LiveLine(lambda progress: progress.passes > 1, file)
        assert line(Progress("selection", 1, 0.0)) is False
        assert line(Progress("selection", 2, 5.0, (10.0, 20.0))) is True
        line.clear()
    assert "fitting: selection: 2 passes, 5 s, usually" in terminal.getvalue()
    assert terminal.getvalue().endswith(" \r")
    assert plain.getvalue() == ""
