"""``reproduce`` prints claim, measurement and verdict, and draws."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

import robustphase.cli.reproduce as module
from robustphase.cli.app import Terminated
from robustphase.experiments.reproduce import CLAIMS, ReproductionInterrupted, Verdict
from robustphase.experiments.reproduce import run as run_module
from robustphase.experiments.reproduce.verdict import Experiment

from .conftest import leftovers

HOLDS = Verdict("Theorem 3.1", "It is so.", "it was", "95%: [0, 1]", "holds", seconds=2.0)
ERRATUM = Verdict("Lemma 2.1", "It is so.", "it was not", "99%: [1, 2]", "erratum", erratum="A1", part="convexity")
FAILS = Verdict("Theorem 3.2", "It is so.", "it never was", "", "fails")


def test_a_claim_is_measured_judged_and_drawn(run, tmp_path):
    told = run("reproduce", "lemma 2.1", "--quick", "--workers", 1, "--folder", "kept", "--page", "page.md").stdout
    assert "Lemma 2.1, strong convexity: erratum A1" in told
    assert "Lemma 2.1, smoothness: holds" in told
    assert "claimed   Within ‖x*‖/9 of the truth" in told
    assert "2 statements; hold: 1, errata: 1, fail: 0" in told
    assert "| **Lemma 2.1**, smoothness |" in (tmp_path / "page.md").read_text()
    kept = json.loads((tmp_path / "kept" / "verdicts-quick.json").read_text())["verdicts"]
    assert [verdict["verdict"] for verdict in kept] == ["erratum", "holds"]
    for verdict in kept:
        drawn = ElementTree.parse(tmp_path / verdict["figure"]).getroot()
        words = " ".join(drawn.itertext())
        assert verdict["data"]["figure"]["title"] in words
        assert verdict["claim"] in words
    assert not leftovers(tmp_path)


@pytest.mark.parametrize(("verdicts", "code"), [([HOLDS], 0), ([HOLDS, ERRATUM], 0), ([HOLDS, FAILS], 1)])
def test_only_a_contradiction_is_a_failure(run, monkeypatch, verdicts, code):
    monkeypatch.setattr(module, "run_claims", lambda *arguments, **settings: verdicts)
    told = run("reproduce", code=code).stdout
    assert "Theorem 3.1: holds (2 s)" in told
    assert told.count("measured") == len(verdicts)


def test_all_claims_are_run_unless_some_are_named(run, monkeypatch):
    asked = []

    def note(claims, **settings):
        asked.append((claims, settings["quick"], settings["workers"], settings["resume"]))
        settings["progress"]("1 of 2: Theorem 3.1")
        settings["progress"]("halfway")
        return [HOLDS]

    monkeypatch.setattr(module, "run_claims", note)
    assert run("reproduce").stderr == "1 of 2: Theorem 3.1\nhalfway\n"
    assert run("reproduce", CLAIMS[0], "--quick", "--workers", 2, "--quiet").output == ""
    assert asked == [(None, False, None, False), ((CLAIMS[0],), True, 2, False)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("Lemma 9.9",), "there is no claim 'Lemma 9.9'. Choose from: Lemma 2.1"), (("--resume",), "needs the --folder")],
)
def test_bad_usage(run, arguments, said):
    assert said in run("reproduce", *arguments, code=2).stderr


def test_a_request_to_terminate_is_told_from_an_interruption(run, monkeypatch):
    def terminated(*arguments, **settings):
        try:
            raise Terminated
        except KeyboardInterrupt as stop:
            raise ReproductionInterrupted("interrupted", []) from stop

    monkeypatch.setattr(module, "run_claims", terminated)
    assert run("reproduce", code=143).stderr == "terminated; nothing was written\n"


def test_an_interruption_shows_what_was_finished_and_how_to_go_on(run, monkeypatch):
    def interrupted(*arguments, **settings):
        raise ReproductionInterrupted("interrupted", [HOLDS])

    monkeypatch.setattr(module, "run_claims", interrupted)
    assert run("reproduce", code=130).stderr == "interrupted; nothing was written\n"
    result = run("reproduce", "--folder", "kept", code=130)
    assert result.stderr == "interrupted; 1 verdict is in kept, and --resume goes on\n"
    assert "Theorem 3.1: holds" in result.stdout


def test_experiments_are_run_printed_and_judged_by_the_exit_code(run, monkeypatch, tmp_path):
    stopped = []

    def experiment(part, verdict):
        def measure(pool, quick):
            if part in stopped:
                raise KeyboardInterrupt
            return Verdict("Lemma 0", "It is so.", "it was", "", verdict, part=part)

        return Experiment("Lemma 0", part, measure, in_quick=part != "second")

    three = (experiment("first", "holds"), experiment("second", "fails"), experiment("third", "holds"))
    monkeypatch.setattr(run_module, "EXPERIMENTS", three)
    told = run("reproduce", "--quick", "--workers", 1, "--page", "page.md").stdout
    assert "Lemma 0, third: holds" in told
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("Quick version. Of 2 statements 2 hold")
    run("reproduce", "--workers", 1, code=1)
    stopped.append("third")
    assert "2 statements" in run("reproduce", "--workers", 1, code=130).stdout
