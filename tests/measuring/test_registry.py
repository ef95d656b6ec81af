"""Every benchmark is registered, can be run by its name, and takes its options in one way."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import registry
from benchmarks.digest import files_of
from benchmarks.options import call, parser_of
from benchmarks.registry import BENCHMARKS, PERFORMANCE, owner_of, total_minutes

FOLDER = Path(registry.__file__).parent
#: Modules with a ``run`` that are not benchmarks.
OTHERS = {"__main__"}


def test_every_module_with_a_run_is_registered():
    runners = {
        path.stem for path in FOLDER.glob("*.py") if re.search(r"^def run\(", path.read_text("utf-8"), re.MULTILINE)
    }
    assert runners - OTHERS == set(BENCHMARKS)


def test_every_room_exists_and_every_question_is_asked():
    for one in BENCHMARKS.values():
        assert files_of(one.rooms)
        assert one.question.endswith(("?", ".", "data."))
        assert one.minutes > 0


def test_no_page_has_two_writers():
    counts = Counter(page for one in BENCHMARKS.values() for page in (*one.pages, *one.pictures))
    assert set(counts.values()) == {1}
    assert owner_of("_generated/recovery.md").name == "recovery"


def test_all_pages_can_be_measured_in_three_quarters_of_an_hour():
    assert total_minutes(one for one in BENCHMARKS.values() if one.pages or one.pictures) <= 45


def test_benchmarks_of_one_core_share_the_machine():
    one, two = (registry.Benchmark("x", "?", 4, ("means",), cores=cores) for cores in (1, 2))
    assert total_minutes([one, two]) == 6


def test_the_options_of_a_benchmark_are_the_keywords_of_its_run(case):
    for needed in ("matplotlib", "joblib", "dask"):
        if find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    for name in BENCHMARKS:
        with case(name):
            run = import_module(f"benchmarks.{name}").run
            asked = vars(parser_of(run, name).parse_args([]))
            assert asked == dict(zip(run.__code__.co_varnames, run.__defaults__ or (), strict=False))


def test_options_are_read_by_the_kind_of_their_defaults():
    seen = {}

    def run(
        seeds: int = 3, most: float = 1e6, names: tuple[str, ...] = ("a",), quick: bool = True, folder: Path = FOLDER
    ):
        seen.update(seeds=seeds, most=most, names=names, quick=quick, folder=folder)

    call(run, "x", ["--seeds", "5", "--names", "b", "c", "--no-quick", "--folder", "there"])
    assert seen == {"seeds": 5, "most": 1e6, "names": ("b", "c"), "quick": False, "folder": Path("there")}


@pytest.fixture
def ran(monkeypatch):
    """What would have been run, with which options."""
    calls = []
    monkeypatch.setattr(command, "call", lambda run, name, options: calls.append((name, list(options))))
    return calls


def test_without_a_name_the_performance_ratios_are_measured(ran):
    assert command.main([]) == 0
    assert [name for name, _ in ran] == list(PERFORMANCE)


def test_several_names_run_in_turn(ran):
    command.main(["passes", "means"])
    assert ran == [("passes", []), ("means", [])]


def test_options_go_to_the_one_that_is_named(ran):
    command.main(["many", "--signals", "20"])
    assert ran == [("many", ["--signals", "20"])]


def test_an_unknown_name_is_refused_with_a_way_to_find_the_right_one(ran):
    with pytest.raises(SystemExit, match="no benchmark 'recover'; python -m benchmarks list"):
        command.main(["recover"])
    assert ran == []


def test_the_list_has_every_benchmark_with_its_minutes(capsys):
    assert command.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == list(BENCHMARKS)
    assert all(float(line.split()[1]) == BENCHMARKS[line.split()[0]].minutes for line in lines[1:-1])
    assert "minutes on two cores" in lines[-1]
