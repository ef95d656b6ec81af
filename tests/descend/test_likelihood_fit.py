"""The likelihood fit: M never falls, the end is the same from everywhere, the estimates are efficient."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.effort import seeds

from robustphase import distance
from robustphase.descend.climb import CLIMB, Free, Reason, Stopping
from robustphase.descend.likelihood_fit import fit_likelihood, fit_signals, refit
from robustphase.descend.objective import OBJECTIVE, State, in_double
from robustphase.experiments.methods import oracle_least_squares
from robustphase.likelihood import NoiseModel, initial_model
from robustphase.likelihood.bad_responses import DENSITY
from robustphase.simulate import make_world

FLOOR = 0.3
NOISELESS = {"noise": "none", "noise_std": 0.0}
CLEAN = {"contamination": 0.0, "attack": "none"}


def state_of(problem, signals, scale, rho=0.01):
    """A state at given signals in the units of the responses, with a noise model that knows nothing but a scale."""
    k = signals.shape[1]
    noise = initial_model(np.full(k, scale), np.full(k, 0.1))
    return State(signals / np.sqrt(problem.units), np.zeros(k), noise, np.full(k, rho))


def fit_near(problem, world, scale, *, factor=1.05):
    """The fit from a multiple of the truth, with the scale in the units of the responses."""
    return refit(problem, state_of(problem, factor * world.truth[:, None], scale / problem.units[0]))


def signal_of(problem, fit, column=0):
    return np.sqrt(problem.units[column]) * fit.state.signals[:, column]


def assert_never_lower(fit, case):
    rounding = CLIMB.rounding[0 if in_double(fit.merits.shape[1]) else 1]
    assert fit.merits.shape[0] >= 2, case
    for k, merits in enumerate(fit.merits.T):
        merits = merits[~np.isnan(merits)]
        assert merits.size, case
        falls = merits[:-1] - merits[1:] - rounding * (1 + np.abs(merits[:-1]))
        assert not (falls > 0).any(), f"{case}, column {k}: M fell by {falls.max():.2e} more than rounding explains"


WORLDS = {
    "clean": {"n": 20, "m": 600, **CLEAN, "noise": "gaussian"},
    "attacked": {"n": 20, "m": 600, "attack": "decoy"},
    "heavy-tailed": {"n": 20, "m": 600, "attack": "huge", "noise": "pareto"},
    "skewed": {"n": 20, "m": 600, "attack": "constant", "noise": "lognormal"},
    "few samples": {"n": 30, "m": 150, **CLEAN, "noise": "gaussian", "noise_std": 0.2},
    "noiseless": {"n": 20, "m": 400, **CLEAN, **NOISELESS},
    "complex": {"n": 15, "m": 600, "attack": "moderate", "field": "complex"},
}


@pytest.mark.parametrize("world", WORLDS)
def test_accepted_points_never_lower_the_merit(problem_of, world):
    for seed in seeds(2, 3):
        drawn, case = make_world(**WORLDS[world], seed=seed), f"{world}, seed {seed}"
        problem, rng = problem_of(drawn, floor=FLOOR), np.random.default_rng(seed)
        noise = 0.3 * rng.standard_normal(drawn.truth.size) / np.sqrt(drawn.truth.size)
        state = state_of(problem, (drawn.truth + noise)[:, None], 0.5)
        for free in Free:
            fit = fit_likelihood(problem, state, Stopping(1e-7, 0.02, 40, 20), free)
            assert_never_lower(fit, f"{case}, free: {free}")
            assert Reason.RUNNING not in fit.reasons, case
            assert fit.converged.shape == (1,)


@pytest.mark.parametrize("field", ["real", "complex"])
def test_accepted_points_never_lower_the_merit_of_any_column(problem_of, field):
    attacks = ("none", "huge", "decoy", "constant", "negative", "moderate")
    for seed, copies in ((seed, copies) for seed in range(2) for copies in (1, 2)):
        # Attacks on responses alone: the covariates are those of the first world. Twice as many are judged in single precision.
        worlds = [make_world(15, 800, attack=attack, field=field, seed=seed) for attack in attacks] * copies
        problem, truth = problem_of(*worlds, floor=FLOOR), worlds[0].truth
        factors = np.array([0.9, 1.1, 1.3, 1.0, 0.7, 1.05] * copies)
        fit = refit(problem, state_of(problem, factors * truth[:, None], 0.5))
        assert_never_lower(fit, f"{field}, seed {seed}, {len(worlds)} columns")
        assert len(fit.reasons) == len(worlds)
        assert Reason.RUNNING not in fit.reasons
    assert in_double(len(attacks))
    assert 2 * len(attacks) > OBJECTIVE.double


def test_a_fit_says_why_it_ended(problem_of):
    world = make_world(20, 1000, attack="huge", seed=0)
    problem = problem_of(world, floor=FLOOR)
    settled = fit_near(problem, world, 0.5)
    assert settled.reasons == [Reason.SETTLED]
    assert settled.converged.all()
    state = state_of(problem, 0.5 * world.truth[:, None], 0.5)
    hasty = fit_likelihood(problem, state, Stopping(1e-12, 1e-9, 2, 0), Free.SHAPE)
    assert hasty.reasons == [Reason.TOO_MANY]
    assert not hasty.converged.any()
    assert len(hasty.moves) == len(hasty.merits) == 3


def test_starts_that_explain_nothing_do_not_raise(problem_of):
    world = make_world(10, 400, attack="huge", seed=0)
    problem = problem_of(world, floor=FLOOR)
    good = state_of(problem, world.truth[:, None], 0.5)
    cases = {
        "a background that is not a number": good._replace(backgrounds=np.array([np.nan])),
        "a signal that is not a number": good._replace(signals=np.full((10, 1), np.nan)),
        "a signal so long that every sample looks bad": good._replace(signals=1e30 * good.signals),
        "a signal a hundred times too long": good._replace(signals=100 * good.signals),
        "a signal far too short": good._replace(signals=1e-30 * good.signals),
        "a scale far too small": good._replace(noise=good.noise._replace(scales=np.array([1e-13]))),
        "a scale much too small": good._replace(noise=good.noise._replace(scales=np.array([1e-6]))),
        "a scale far too large": good._replace(noise=good.noise._replace(scales=np.array([1e13]))),
    }
    for case, state in cases.items():
        fit = refit(problem, state)
        assert fit.reasons[0] is not Reason.RUNNING, case
        # Nobody may take such an end for an answer.
        error = np.linalg.norm(fit.state.signals - good.signals)
        assert not fit.converged[0] or error < 0.2 * np.linalg.norm(good.signals), case
        # M is bounded: that of a sample is at most the log of the largest density a clean one has at this scale.
        highest = np.log(fit.state.noise.density(np.zeros((1, 1))).max() + problem.density.max())
        assert not (fit.merits > highest + 1).any(), case


def test_a_start_that_explains_nothing_disturbs_no_other_column(problem_of):
    world = make_world(15, 800, attack="huge", seed=1)
    problem = problem_of(world, world, world, floor=FLOOR)
    state = state_of(problem, 1.05 * world.truth[:, None] * np.ones(3), 0.5)
    state.signals[:, 1] = np.nan
    fit = refit(problem, state)
    alone = fit_near(problem_of(world, floor=FLOOR), world, 0.5 * problem.units[0])
    for k in (0, 2):
        assert distance(signal_of(problem, fit, k), signal_of(problem, alone), relative=True) < 1e-5, f"column {k}"
        assert fit.converged[k]


@pytest.mark.parametrize("noise", ["gaussian", "student", "lognormal"])
def test_a_fit_ends_at_the_same_point_wherever_it_starts(problem_of, noise):
    for seed in (4, 5):
        world = make_world(30, 1500, contamination=0.1, attack="decoy", noise=noise, seed=seed)
        problem = problem_of(world, floor=FLOOR)
        one, other = fit_near(problem, world, 0.3), fit_near(problem, world, 0.8, factor=0.9)
        assert one.converged.all()
        assert other.converged.all()
        # The steps that are left are shorter than the tolerance; what they add up to may be a few times that.
        assert distance(signal_of(problem, one), signal_of(problem, other), relative=True) < 1e-5, f"seed {seed}"


def test_columns_are_fitted_together_as_alone(problem_of):
    for seed in (1, 2):
        world = make_world(20, 1500, contamination=0.1, attack="decoy", noise="student", seed=seed)
        factors = np.array([0.95, 1.1])
        both, one = problem_of(world, world, floor=FLOOR), problem_of(world, floor=FLOOR)
        state = state_of(both, factors * world.truth[:, None], 0.5)
        together = refit(both, state)
        for k in range(2):
            alone = refit(one, state.only(np.array([k])))
            assert_allclose(together.state.signals[:, k], alone.state.signals[:, 0], atol=1e-5, err_msg=f"seed {seed}")


def test_a_column_that_has_ended_stays_where_it_ended(problem_of):
    # One column starts at its end, the others far away, so that it waits for them.
    world = make_world(15, 800, contamination=0.1, attack="huge", seed=3)
    both, one = problem_of(*[world] * 6, floor=FLOOR), problem_of(world, floor=FLOOR)
    factors = np.array([1.0, 0.6, 0.65, 1.5, 1.6, 0.7])
    state, stopping = state_of(both, factors * world.truth[:, None], 0.5), Stopping(0.05, np.inf, 12, 0)
    together = fit_likelihood(both, state, stopping, Free.SCALE)
    alone = fit_likelihood(one, state.only(np.array([0])), stopping, Free.SCALE)
    assert len(alone.merits) < len(together.merits)
    assert_allclose(together.state.signals[:, 0], alone.state.signals[:, 0], atol=1e-5)
    ended = np.isnan(together.merits[:, 0])
    assert_allclose(together.merits[~ended, 0], alone.merits[:, 0], rtol=1e-5)
    assert ended.any()


def test_few_samples_are_fitted_to_the_end(problem_of):
    # Four samples per unknown, no noise: population moments are far off, and the steps must still become exact.
    for seed in range(2):
        world = make_world(50, 200, **CLEAN, **NOISELESS, seed=seed)
        rng = np.random.default_rng(seed)
        start = world.truth[:, None] + 0.05 * rng.standard_normal((50, 1)) / np.sqrt(50)
        problem = problem_of(world, level=0.02)
        fit, _ = fit_signals(problem, start / np.sqrt(problem.units), np.zeros(1), np.array([0.1]))
        assert distance(signal_of(problem, fit), world.truth) < 1e-9, f"seed {seed}"


def test_two_rounds_find_where_bad_responses_lie(problem_of):
    for seed in range(2):
        # Many samples, so that none can hide: all bad responses are the same, and elsewhere there are none.
        world = make_world(10, 80_000, contamination=0.1, attack="constant", noise="gaussian", seed=seed)
        problem = problem_of(world)
        start = 1.1 * world.truth[:, None] / np.sqrt(problem.units)
        fit, fine = fit_signals(problem, start, np.zeros(1), np.array([0.5]))
        assert fit.converged.all(), f"seed {seed}"
        assert np.quantile(fine.density[world.clean], 0.9) == DENSITY.floor, f"seed {seed}"
        assert np.median(fine.density[world.touched]) > 5 * DENSITY.floor, f"seed {seed}"
        assert fit.clean[world.touched].max() < 0.5 < np.median(fit.clean[world.clean]), f"seed {seed}"


def test_with_few_samples_bad_responses_may_hide_anywhere(problem_of):
    world = make_world(20, 1000, contamination=0.05, attack="constant", noise="gaussian", seed=0)
    problem = problem_of(world)
    start = 1.1 * world.truth[:, None] / np.sqrt(problem.units)
    _, fine = fit_signals(problem, start, np.zeros(1), np.array([0.5]))
    np.testing.assert_array_equal(fine.density, np.maximum(problem.density, DENSITY.floor))


def test_a_fit_holds_what_belongs_to_its_state(problem_of):
    world = make_world(20, 900, attack="decoy", seed=0)
    problem = problem_of(world, world, floor=FLOOR)
    fit = refit(problem, state_of(problem, np.array([0.9, 1.1]) * world.truth[:, None], 0.5))
    s = world.A @ fit.state.signals
    assert_allclose(fit.projections, s, atol=1e-10)
    assert_allclose(fit.residuals, problem.responses - s**2 - fit.state.backgrounds, atol=1e-9)
    assert_allclose(fit.spreads, fit.state.spreads * s**2 / np.linalg.norm(fit.state.signals, axis=0) ** 2, atol=1e-10)
    assert 0 <= fit.clean.min() <= fit.clean.max() <= 1


def test_columns_may_be_replaced(problem_of):
    world = make_world(10, 400, attack="huge", seed=0)
    both, one = problem_of(world, world, floor=FLOOR), problem_of(world, floor=FLOOR)
    state = state_of(both, np.array([0.9, 1.1]) * world.truth[:, None], 0.5)
    rough = fit_likelihood(both, state, Stopping(1e-12, 1e-9, 1, 0), Free.SHAPE)
    better = refit(one, state.only(np.array([1])))
    mixed = rough.put(np.array([False, True]), better)
    assert_allclose(mixed.state.signals[:, 0], rough.state.signals[:, 0])
    assert_allclose(mixed.state.signals[:, 1], better.state.signals[:, 0])
    assert_allclose(mixed.state.noise.scales, [rough.state.noise.scales[0], better.state.noise.scales[0]])
    assert mixed.reasons == [rough.reasons[0], better.reasons[0]]
    assert mixed.moves == rough.moves + better.moves


def deviation(noise: NoiseModel) -> float:
    """Standard deviation of a law without skew."""
    return float(noise.scales[0] * (1 + noise.skews[0]) / 2 * np.sqrt(1 / (1 - 2 * noise.tails[0])))


@pytest.mark.parametrize(("field", "m"), [("real", 400), ("complex", 400), ("complex", 3000)])
def test_the_fitted_scale_is_that_of_the_noise_however_few_the_samples(problem_of, field, m):
    scales, tails, variances, plain = [], [], [], []
    for seed in range(8):
        world = make_world(40, m, **CLEAN, noise="gaussian", field=field, seed=seed)
        problem = problem_of(world, level=0.02, floor=0.1)
        fit = fit_near(problem, world, 0.5, factor=1.0)
        model = fit.state.noise
        scales.append(float(problem.units[0] * model.scales[0] * (1 + model.skews[0]) / 2))
        tails.append(float(model.tails[0]))
        variances.append((problem.units[0] * deviation(model)) ** 2)
        plain.append(float((problem.units[0] ** 2 * fit.residuals**2).mean()))
    # Without leverages 400 complex samples give a scale of 0.34, and less than three degrees of freedom.
    assert np.median(scales) == pytest.approx(0.5, rel=0.08)
    assert np.median(tails) < 1 / 6
    # Plain variances are too small by the share of unknowns among the samples, 3 to 20 %; a variance of m normal variables is
    # known to sqrt(2/m), and the mean of eight to 2.5 % at the least m.
    biases = [abs(np.mean(values) / 0.25 - 1) for values in (variances, plain)]
    assert biases[0] < biases[1], f"bias {biases[0]:.3f} of the model, {biases[1]:.3f} of plain residuals"


def ratios(problem_of, attack, noise, scale, seeds):
    found = []
    for seed in range(seeds):
        world = make_world(40, 2000, contamination=0.1, attack=attack, noise=noise, seed=seed)
        problem = problem_of(world, floor=FLOOR)
        told = oracle_least_squares(world.A[world.clean], world.y[world.clean], world.truth)
        fitted = signal_of(problem, fit_near(problem, world, scale))
        found.append(distance(fitted, world.truth) / distance(told, world.truth))
    return found


def test_with_normal_noise_a_fit_is_as_good_as_least_squares_on_the_clean_samples(problem_of):
    # Six paired ratios that scatter by about 3 %.
    assert np.median(ratios(problem_of, "huge", "gaussian", 0.5, 6)) < 1.06


def test_a_fit_beats_least_squares_where_the_noise_is_heavy_and_skewed(problem_of):
    assert np.median(ratios(problem_of, "constant", "lognormal", 0.3, 4)) < 0.7
