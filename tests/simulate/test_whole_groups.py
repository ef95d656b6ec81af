"""Adversaries that rewrite whole groups: whole, within their budget, on every design, and each as it says."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from robustphase.simulate import (
    DESIGNS,
    GROUP_ADVERSARIES,
    Adversary,
    Rewrite,
    SampleOracle,
    corrupt,
    make_world,
    random_signal,
)

DOCS = Path(__file__).parents[2] / "docs"


def attacked(name, *, groups=20, n=12, m=800, contamination=0.2, seed=3, **more):
    """A clean world, and the same one after an adversary."""
    clean = make_world(n, m, attack="none", groups=groups, contamination=contamination, seed=seed, **more)
    bad = make_world(n, m, attack=name, groups=groups, contamination=contamination, seed=seed, **more)
    return clean, bad


@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=12),
    contamination=st.floats(0, 0.499),
    field=st.sampled_from(["real", "complex"]),
    seed=st.integers(0, 2**32),
)
def test_groups_are_rewritten_whole_and_within_the_budget(case, sizes, contamination, field, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    clean = make_world(5, labels.size, attack="none", field=field, seed=seed)
    for name in GROUP_ADVERSARIES:
        bad = corrupt(clean.A, clean.y, clean.truth, attack=name, contamination=contamination, groups=labels, seed=seed)
        with case(name):
            assert bad.touched.sum() <= np.floor(contamination * labels.size)
            shares = np.bincount(bad.groups, bad.touched) / np.bincount(bad.groups)
            assert set(shares) <= {0.0, 1.0}
            assert_array_equal(bad.A[bad.clean], clean.A[bad.clean])
            assert_array_equal(bad.y[bad.clean], clean.y[bad.clean])


def test_equal_groups_use_the_whole_budget(case):
    for name in GROUP_ADVERSARIES:
        _, bad = attacked(name)
        with case(name):
            assert bad.touched.sum() == 160
            assert np.unique(bad.groups[bad.touched]).size == 4


@pytest.mark.parametrize("design", DESIGNS)
def test_groups_can_be_rewritten_on_every_design(design, case):
    for name in GROUP_ADVERSARIES:
        clean, bad = attacked(name, design=design, field="complex", m=200)
        with case(name):
            assert bad.A.dtype == clean.A.dtype
            assert np.isfinite(bad.A).all()
            assert_allclose(DESIGNS[design].match(bad.A), bad.A, atol=1e-9)
            changed = (bad.A != clean.A).any(axis=1) | (bad.y != clean.y)
            # Single samples may stay what they were by chance, such as a pattern of few pixels.
            assert changed[bad.touched].mean() > 0.5


def test_rotated_rows_have_the_correlation_that_is_stated():
    for more in ({}, {"design": "mean"}, {"field": "complex"}):
        clean, bad = attacked("group_rotated", n=20, m=20_000, **more)
        first, second = (np.ravel(world.A[bad.touched]) for world in (clean, bad))
        # 80,000 pairs of entries: the standard error is below 0.004.
        assert abs(np.corrcoef(first, second)[0, 1] - 0.7) < 0.02
        assert_array_equal(bad.y, clean.y)
        assert_allclose(np.abs(second).mean(), np.abs(first).mean(), rtol=0.02)


def test_swapped_groups_hold_the_same_responses_in_other_groups():
    clean, bad = attacked("group_swapped")
    assert_array_equal(np.sort(bad.y), np.sort(clean.y))
    for group in np.unique(bad.groups[bad.touched]):
        own = bad.y[bad.groups == group]
        assert any(np.array_equal(own, clean.y[clean.groups == other]) for other in range(20) if other != group)
    clean, alone = attacked("group_swapped", contamination=0.05)
    assert_array_equal(alone.y[alone.touched], clean.y[alone.touched][::-1])


def test_the_other_attacks_do_what_they_say():
    _, dead = attacked("group_dead", noise_mean=2.0)
    assert_allclose(dead.y[dead.touched], 2.0)
    clean, loud = attacked("group_gain", noise_mean=2.0)
    assert_allclose(loud.y[loud.touched] - 2.0, 1.5 * (clean.y[loud.touched] - 2.0))
    _, decoy = attacked("group_decoy", n=2, noise="none")
    across = np.array([-decoy.truth[1], decoy.truth[0]])
    assert_allclose(decoy.y[decoy.touched], (decoy.A[decoy.touched] @ across) ** 2)


def test_a_burst_hits_groups_that_follow_one_another():
    for seed in range(6):
        clean, bad = attacked("group_burst", seed=seed)
        hit = np.bincount(bad.groups, bad.touched) > 0
        assert np.count_nonzero(hit != np.roll(hit, 1)) == 2
        assert np.std((bad.y - clean.y)[bad.touched]) > 1.5


def test_groups_are_a_number_or_labels():
    by_number = make_world(4, 10, groups=4, attack="none", seed=0)
    assert_array_equal(by_number.groups, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
    by_name = make_world(4, 4, groups=["b", "a", "b", "c"], attack="none", seed=0)
    assert_array_equal(by_name.groups, [1, 0, 1, 2])
    assert make_world(4, 10, attack="none", seed=0).groups is None


def test_single_samples_may_be_bad_where_groups_are_known():
    world = make_world(5, 100, groups=10, attack="huge", contamination=0.1, seed=0)
    assert world.touched.sum() == 10
    assert np.unique(world.groups[world.touched]).size > 1


def test_groups_that_make_no_sense_are_refused(case):
    for groups in [0, 11, 2.5, True, [1, 2], np.zeros((10, 2))]:
        with case(groups), pytest.raises(ValueError, match="groups must"):
            make_world(4, 10, groups=groups, seed=0)


def test_an_attack_on_groups_asks_for_them():
    mine = Adversary(
        "mine", "groups", "Takes the first.", lambda sample, budget, rng: Rewrite(np.arange(budget), y=0.0)
    )
    for attack in ("group_dead", mine):
        with pytest.raises(ValueError, match="rewrites whole groups of samples: pass groups"):
            make_world(4, 100, attack=attack, seed=0)
    with pytest.raises(ValueError, match="rewrites whole groups"):
        SampleOracle(random_signal(4, seed=0), attack="group_dead", contamination=0.1)
    with pytest.raises(ValueError, match="Did you mean 'group_dead'"):
        make_world(4, 100, groups=5, attack="group_ded", seed=0)


def test_the_page_of_adversaries_explains_each_attack_on_groups():
    page = (DOCS / "adversaries.md").read_text(encoding="utf-8")
    assert [name for name in GROUP_ADVERSARIES if f"**`{name}`**" not in page] == []
    for name, adversary in GROUP_ADVERSARIES.items():
        assert (adversary.name, adversary.group) == (name, "groups")
        assert adversary.description.endswith(".")
