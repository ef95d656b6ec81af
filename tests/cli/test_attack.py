"""``robustphase attack``."""

from __future__ import annotations

import json

import pytest

from robustphase.experiments import attack_report

SMALL = ("--n", 5, "--m", 150, "--seeds-per-attack", 1, "--confirm", 1, "--workers", 1)


@pytest.mark.parametrize("method", ["ours", "paper", "wirtinger_flow"])
def test_it_shows_the_worst_attacks_beside_what_no_method_avoids(run, tmp_path, method):
    told = run("attack", "--method", method, "--budget", 6, "--report", "worst.md", *SMALL)
    for words in (" rad with norm ", "error under the worst attack", "error that no method avoids"):
        assert words in told.stdout
    assert "report: worst.md" in told.stdout
    assert (tmp_path / "worst.md").read_text("utf-8").startswith("# The worst attacks found against")


def test_a_search_that_is_interrupted_says_how_to_go_on_and_then_does(run, tmp_path, monkeypatch):
    whole = run("attack", "--method", "wirtinger_flow", "--budget", 8, "--store", "whole.json", *SMALL)
    real, added = attack_report.TrialStore.add, []

    def add(self, part, trial):
        real(self, part, trial)
        added.append(part)
        if len(added) == 4:
            raise KeyboardInterrupt

    typed = ("attack", "--method", "wirtinger_flow", "--budget", 8, "--store", "search.json", *SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(attack_report.TrialStore, "add", add)
        stopped = run(*typed, code=130)
    assert (
        "what was tried is in search.json. To go on: robustphase attack --method wirtinger_flow --budget 8"
        in stopped.stderr
    )
    assert "not run" in stopped.stdout
    again = run(*typed)
    assert again.stdout.replace("search.json", "whole.json") == whole.stdout
    kept = [json.loads((tmp_path / name).read_text("utf-8")) for name in ("whole.json", "search.json")]
    assert kept[0] == kept[1]


def test_without_a_store_an_interruption_says_how_the_next_one_can_be_continued(run, monkeypatch):
    def add(self, part, trial):
        raise KeyboardInterrupt

    monkeypatch.setattr(attack_report.TrialStore, "add", add)
    stopped = run("attack", "--budget", 8, *SMALL, code=130)
    assert "nothing was written. With --store SEARCH.json a search can be continued" in stopped.stderr


def test_bad_usage_is_said_in_the_words_of_the_options(run):
    assert "Did you mean wirtinger_flow" in run("attack", "--method", "wirtinger_flw", code=2).stderr
    assert "--budget must be at least 6" in run("attack", "--budget", 5, code=2).stderr
    assert "name the same file" in run("attack", "--store", "a.json", "--report", "a.json", code=2).stderr
    assert "ends in .json" in run("attack", "--store", "a.txt", code=1).stderr
