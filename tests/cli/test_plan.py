"""``plan`` is the library's plan."""

from __future__ import annotations

import pytest

from robustphase.experiments import PlanWarning, plan


def same(text: str, other: str) -> bool:
    """Whether all lines agree but the one about this machine, whose time is measured anew."""
    return [line for line in text.splitlines() if "cost" not in line] == [
        line for line in other.splitlines() if "cost" not in line
    ]


def test_the_plan_is_that_of_the_python_interface(run):
    told = run(
        "plan", "--n", 50, "--noise-std", 0.3, "--contamination", 0.05, "--delta", 0.1, "--noise-mean", "unknown"
    )
    expected = plan(50, noise_std=0.3, contamination=0.05, delta=0.1, noise_mean="unknown")
    assert same(told.stdout, f"{expected}\n")


def test_too_few_samples_are_told_once(run):
    result = run("plan", "--n", 50, "--m", 60)
    with pytest.warns(PlanWarning):
        expected = plan(50, m=60)
    assert same(result.stdout, f"{expected}\n")
    assert "fewer than" in result.stdout
    assert result.stderr == ""


def test_a_target_sets_the_number_of_samples(run):
    assert same(run("plan", "--n", 50, "--target-error", 0.2).stdout, f"{plan(50, target_error=0.2)}\n")


def test_what_cannot_be_reached_is_an_error_in_the_words_of_options(run):
    said = run("plan", "--n", 50, "--contamination", 0.45, code=1).stderr
    assert "pass --m to see" in said
    assert len(said.splitlines()) == 1


def test_bad_usage(case, run):
    for arguments, said in [
        ((), "Missing option '--n'"),
        (("--n", 5, "--m", 50, "--target-error", 0.1), "not both"),
        (("--n", 5, "--contamination", 10), "Did you mean 0.1 (10 percent)?"),
    ]:
        with case(arguments):
            assert said in run("plan", *arguments, code=2).stderr
