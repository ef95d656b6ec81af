"""Adversaries: budget, purity and equivariance for all of them, and what a few of them promise."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks import adversaries as unprotected
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.simulate import ADVERSARIES, Adversary, CleanSample, Rewrite, corrupt, make_world
from robustphase.simulate.adversaries import GROUPS

DOCS = Path(__file__).parents[2] / "docs"
DTYPES = ["float32", "float64", "complex64", "complex128"]

both_fields = pytest.mark.parametrize("field", ["real", "complex"])


def clean_world(seed=0, n=6, m=90, **settings):
    return make_world(n, m, attack="none", seed=seed, **settings)


def attacked(world, name, *, contamination=0.2, seed=7):
    return corrupt(
        world.A,
        world.y,
        world.truth,
        attack=name,
        contamination=contamination,
        noise_std=world.noise_std,
        noise_mean=world.noise_mean,
        seed=seed,
    )


@settings(max_examples=20)
@given(
    n=st.integers(1, 8),
    m=st.integers(1, 60),
    contamination=st.floats(0, 0.499),
    dtype=st.sampled_from(DTYPES),
    noise=st.sampled_from(["student", "none"]),
    background=st.sampled_from([0.0, 3.0, -3.0]),
    seed=st.integers(0, 2**32),
)
def test_an_adversary_stays_within_its_budget(case, n, m, contamination, dtype, noise, background, seed):
    field = "complex" if "complex" in dtype else "real"
    world = clean_world(seed, n, m, field=field, dtype=dtype, noise=noise, noise_mean=background, norm=2.0)
    A, y = world.A.copy(), world.y.copy()
    for name in ADVERSARIES:
        bad = attacked(world, name, contamination=contamination, seed=seed)
        with case(name):
            assert bad.touched.sum() <= np.floor(contamination * m)
            assert_array_equal(bad.A[~bad.touched], A[~bad.touched])
            assert_array_equal(bad.y[~bad.touched], y[~bad.touched])
            assert_array_equal(bad.clean, ~bad.touched)
            assert (bad.A.shape, bad.A.dtype, bad.y.shape, bad.y.dtype) == (A.shape, A.dtype, y.shape, y.dtype)
            # The clean sample is left alone, and the copies share no memory with it.
            assert_array_equal(world.A, A)
            assert_array_equal(world.y, y)
            assert not np.shares_memory(bad.A, world.A)
            assert not np.shares_memory(bad.y, world.y)
            if name != "nonfinite":
                assert np.isfinite(bad.A).all()
                assert np.isfinite(bad.y).all()


@both_fields
def test_an_adversary_spends_its_budget(case, field):
    world = clean_world(field=field)
    for name in ADVERSARIES:
        bad = attacked(world, name)
        with case(name):
            assert bad.touched.sum() == 18
            changed = (bad.A != world.A).any(axis=1) | (bad.y != world.y)
            # A permutation may leave a response where it was.
            assert changed.sum() >= 15


@both_fields
def test_an_attack_scales_with_the_signal(case, field):
    for name in ADVERSARIES:
        small = attacked(clean_world(field=field, norm=1.0), name)
        large = attacked(clean_world(field=field, norm=4.0), name)
        with case(name):
            assert_array_equal(small.touched, large.touched)
            assert_allclose(large.A, small.A, rtol=1e-6, atol=1e-9)
            assert_allclose(large.y, 16.0 * small.y, rtol=1e-6, atol=1e-9)


@both_fields
def test_an_attack_moves_with_the_background(case, field):
    for name in ADVERSARIES:
        level = attacked(clean_world(field=field, noise_mean=0.0), name)
        raised = attacked(clean_world(field=field, noise_mean=3.0), name)
        with case(name):
            assert_array_equal(level.touched, raised.touched)
            assert_allclose(raised.A, level.A, rtol=1e-6, atol=1e-9)
            assert_allclose(raised.y, level.y + 3.0, rtol=1e-6, atol=1e-9)


def test_an_attack_is_a_pure_function_of_sample_budget_and_generator(case):
    world = clean_world()
    sample = CleanSample.of(world.A, world.y, world.truth, world.noise_std, world.noise_mean)
    for name, adversary in ADVERSARIES.items():
        first, again, other = (adversary.attack(sample, 12, np.random.default_rng(seed)) for seed in (1, 1, 2))
        with case(name):
            assert_array_equal(first.rows, again.rows)
            for part in ("A", "y"):
                if getattr(first, part) is not None:
                    assert_array_equal(getattr(first, part), getattr(again, part))
            assert len(np.unique(other.rows)) == len(other.rows) <= 12


def test_an_adversary_cannot_write_into_the_sample_it_sees():
    def vandal(sample, budget, rng):
        sample.A[0] = 0.0

    with pytest.raises(ValueError, match="read-only"):
        attacked(clean_world(), Adversary("vandal", "covariates", "Writes where it may only read.", vandal))


def test_the_registry_covers_every_group_with_distinct_names_and_one_sentence_each():
    assert len(ADVERSARIES) >= 24
    assert {adversary.group for adversary in ADVERSARIES.values()} == set(GROUPS)
    for name, adversary in ADVERSARIES.items():
        assert adversary.name == name
        assert adversary.description.endswith(".")


def test_the_page_of_adversaries_explains_each():
    page = (DOCS / "adversaries.md").read_text(encoding="utf-8")
    assert [name for name in ADVERSARIES if f"**`{name}`**" not in page] == []


@pytest.fixture(scope="module")
def plain():
    """The two unprotected methods that the table in the documentation is made with, and their errors on clean data."""
    return unprotected, errors_of(unprotected, "none")


def errors_of(script, name):
    worlds = (make_world(30, 1200, attack=name, contamination=0.2, seed=seed) for seed in (1, 2, 3))
    return np.median([script.errors(world) for world in worlds], axis=0)


@pytest.mark.parametrize("group", GROUPS)
def test_an_adversary_harms_the_plain_start_or_the_plain_descent(group, plain):
    # Medians of three fixed worlds at 20 percent; the documentation has the full table.
    script, clean = plain
    names = [name for name, adversary in ADVERSARIES.items() if adversary.group == group]
    assert [name for name in names if not script.harmful(errors_of(script, name), clean)[:2].any()] == []


def test_a_fixed_point_is_stationary_away_from_the_truth_and_every_bad_sample_fits_it(plain, case):
    script, _ = plain
    for seed in range(4):
        world = make_world(20, 800, attack="fixed_point", contamination=0.1, seed=seed)
        found = script.plain_descent(world.A, world.y, world.truth, steps=2000)
        residual = np.abs((world.A @ found) ** 2 - world.y)[world.touched]
        with case(seed):
            assert_allclose(script.error(found, world.truth), 0.3, atol=2e-3)
            assert residual.max() < 1.1 * (world.noise_std + 0.1)


@both_fields
def test_a_spectral_tie_closes_the_gap_of_the_weighted_spectrum(field):
    def gap(world):
        values = np.linalg.eigvalsh((world.A.conj().T * world.y) @ world.A / len(world.y))
        return values[-1] - values[-2]

    for seed in range(4):
        settings = {"n": 10, "m": 4000, "contamination": 0.1, "field": field, "seed": seed}
        assert gap(make_world(attack="spectral_tie", **settings)) < 0.4 * gap(make_world(attack="none", **settings))


@both_fields
def test_a_reflected_decoy_keeps_every_response_and_every_length(field):
    world = clean_world(field=field)
    bad = attacked(world, "decoy_reflected")
    assert_array_equal(bad.y, world.y)
    assert_allclose(np.linalg.norm(bad.A, axis=1), np.linalg.norm(world.A, axis=1))


def test_swapping_and_permuting_keep_the_set_of_responses():
    world = clean_world()
    for name in ("swap", "permute"):
        bad = attacked(world, name)
        assert_array_equal(bad.A, world.A)
        assert_array_equal(np.sort(bad.y), np.sort(world.y))


def test_erasing_sets_the_most_informative_responses_to_the_background():
    world = clean_world(noise_mean=2.0)
    bad = attacked(world, "erase")
    energy = np.abs(world.A @ world.truth) ** 2
    assert energy[bad.touched].min() >= energy[~bad.touched].max()
    assert_array_equal(bad.y[bad.touched], 2.0)


@pytest.mark.parametrize("name", ["duplicate", "replicated"])
def test_copied_samples_are_genuine_ones(name):
    world = clean_world()
    bad = attacked(world, name)
    genuine = {(*row, value) for row, value in zip(world.A, world.y, strict=True)}
    assert {(*row, value) for row, value in zip(bad.A, bad.y, strict=True)} <= genuine


def test_attacks_on_the_responses_leave_the_covariates_alone():
    world = clean_world()
    for name, adversary in ADVERSARIES.items():
        if adversary.group == "responses":
            assert_array_equal(attacked(world, name).A, world.A)


def test_nonfinite_rows_hold_nan_and_infinities_in_both_halves():
    bad = attacked(clean_world(), "nonfinite")
    assert np.isnan(bad.A).any()
    assert np.isinf(bad.A).any()
    assert np.isnan(bad.y).any()
    assert np.isinf(bad.y).any()


@pytest.mark.parametrize(("dtype", "size"), [("float64", 1e149), ("float32", 1e18)])
def test_overflow_entries_are_finite_but_their_cubes_are_not(dtype, size):
    bad = attacked(clean_world(dtype=dtype), "overflow")
    largest = np.abs(bad.A).max(axis=1)[bad.touched]
    assert (largest > size / 10).all()
    assert np.isfinite(largest).all()
    with np.errstate(over="ignore"):
        assert np.isinf(largest**3).all()


def test_in_one_dimension_attacks_act_on_the_norm():
    world = clean_world(n=1)
    for name in ADVERSARIES:
        assert attacked(world, name).touched.any()


def rewriting(rows):
    return Adversary("greedy", "responses", "Takes more than it may.", lambda sample, budget, rng: Rewrite(rows, y=0.0))


def test_an_adversary_that_breaks_the_rules_is_refused(case):
    for rows in [np.arange(19), np.array([1, 1]), np.array([90]), np.array([-1])]:
        with (
            case(rows),
            pytest.raises(ValueError, match="attack 'greedy' must rewrite at most 18 distinct rows numbered 0 to 89"),
        ):
            attacked(clean_world(), rewriting(rows))


def test_an_adversary_of_your_own_can_be_used():
    bad = attacked(clean_world(), rewriting(np.array([3, 5])))
    assert_array_equal(np.flatnonzero(bad.touched), [3, 5])
    assert_array_equal(bad.y[[3, 5]], 0.0)


def test_no_attack_and_no_budget_return_plain_copies():
    world = clean_world()
    for name, contamination in (("none", 0.3), ("decoy", 0.0), ("decoy", 0.01)):
        bad = attacked(world, name, contamination=contamination)
        assert not bad.touched.any()
        assert_array_equal(bad.A, world.A)
        assert_array_equal(bad.y, world.y)
        assert not np.shares_memory(bad.A, world.A)


def test_lists_and_integers_are_accepted():
    A, y = [[1, 2], [3, 4], [5, 6], [7, 8]], [1, 2, 3, 4]
    bad = corrupt(A, y, [1, 0], attack="constant", contamination=0.25, seed=0)
    covariates, responses = bad
    assert_array_equal(covariates, np.array(A, float))
    assert_array_equal(np.sort(responses)[-1], 20.0)


def test_a_wrong_argument_is_named_with_its_value_and_a_remedy(case):
    for changes, message in [
        ({"attack": "decoyy"}, "attack must be one of 'blinded_rows', .*; got 'decoyy'. Did you mean 'decoy'?"),
        ({"attack": 3}, "attack must be one of .* got 3"),
        (
            {"contamination": 5},
            r"contamination must be a number in \[0, 0.5\), got 5. Did you mean 0.05 \(5 percent\)?",
        ),
        ({"contamination": 0.5}, "got 0.5. From one half on"),
        ({"contamination": -0.1}, "got -0.1. Pass a fraction such as 0.1"),
        ({"contamination": float("nan")}, "got nan"),
        ({"contamination": "auto"}, "got 'auto'"),
        ({"noise_std": -1.0}, "noise_std must be a finite number at least 0, got -1.0"),
        ({"noise_mean": np.inf}, "noise_mean must be a finite number, got inf"),
        ({"A": np.ones(4)}, r"A must be a non-empty matrix of shape \(m, n\), got shape \(4,\)"),
        ({"y": np.ones(3)}, r"y must hold 4 real responses, one per row of A, got shape \(3,\)"),
        ({"y": np.ones(4) * 1j}, "y must hold 4 real responses"),
        ({"truth": np.ones(3)}, r"truth must have shape \(2,\)"),
        ({"truth": np.zeros(2)}, "truth must be finite and not zero"),
    ]:
        with case(message):
            given = {
                "A": np.ones((4, 2)),
                "y": np.ones(4),
                "truth": np.ones(2),
                "attack": "decoy",
                "contamination": 0.25,
            }
            given |= changes
            with pytest.raises(ValueError, match=message):
                corrupt(given.pop("A"), given.pop("y"), given.pop("truth"), **given)
