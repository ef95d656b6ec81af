"""What is measured is kept with what it was measured with, and pages come from what is kept."""

from __future__ import annotations

import json
import platform
import socket

import numpy as np
import pytest
from benchmarks import history, markdown, registry, render, store
from benchmarks.stamp import stamp_of

PAGE, PICTURE = "_generated/trial.md", "_static/trial.svg"
TEXT = """Median of 3 seeds,
in two lines.

| a | b \\| c |
|---|---|
| 1.5 | `x` |
| 2 |  |

Words.
"""


def test_a_page_is_put_together_as_it_was_taken_apart():
    assert markdown.put_together(markdown.taken_apart(TEXT)) == TEXT


def test_rules_of_tables_are_written_in_one_way():
    other = TEXT.replace("|---|---|", "| --- | :-: |")
    assert markdown.put_together(markdown.taken_apart(other)) == TEXT


def test_every_row_says_what_it_was_measured_with(docs, engine):
    render.publish(PAGE, TEXT, seeds=[7, 3])
    rows = store.stored("trial")
    assert len(rows) == 5
    for row in rows:
        assert row["engine"] == "a" * 12
        assert row["seeds"] == [7, 3]
        assert row["versions"].keys() == {"python", "numpy", "scipy", "robustphase"}
        assert row["versions"]["numpy"] == np.__version__
        assert row["machine"].keys() == {"cores", "processor", "blas"}
        assert row["commit"]
        assert row["date"]


def test_rows_do_not_tell_which_machine_it_was(docs, engine):
    render.publish(PAGE, TEXT)
    text = (store.RESULTS / "trial.jsonl").read_text("utf-8")
    assert socket.gethostname() not in text
    assert platform.release() not in text
    assert str(docs) not in text


def test_the_page_is_what_was_published_below_its_stamp(docs, engine):
    render.publish(PAGE, TEXT)
    page = (docs / PAGE).read_text("utf-8")
    assert stamp_of(page).engine == "a" * 12
    assert page.split("\n\n", 1)[1] == TEXT


def test_rendering_again_writes_the_same_page(docs, engine):
    render.publish(PAGE, TEXT)
    page = (docs / PAGE).read_text("utf-8")
    (docs / PAGE).unlink()
    render.render_all()
    assert (docs / PAGE).read_text("utf-8") == page


def test_a_part_replaces_itself_and_leaves_the_others(docs, engine):
    for part, value in (("x", 1), ("y", 2), ("x", 3)):
        store.keep("trial", PAGE, [{"value": value}], part=part)
    assert [(row["part"], row["value"]) for row in store.stored("trial")] == [("y", 2), ("x", 3)]


def test_rows_of_another_engine_go_when_a_part_is_measured_again(docs, engine):
    store.keep("trial", PAGE, [{"value": 1}], part="x")
    engine("b" * 12)
    store.keep("trial", PAGE, [{"value": 2}], part="y")
    assert [row["part"] for row in store.stored("trial")] == ["y"]


def test_rows_of_other_software_stay_and_take_nothing_away(docs, engine):
    store.keep("trial", PAGE, [{"value": 1}], part="theirs", foreign=True)
    store.keep("trial", PAGE, [{"value": 2}], part="ours")
    engine("b" * 12)
    store.keep("trial", PAGE, [{"value": 3}], part="more of theirs", foreign=True)
    assert [row["value"] for row in store.stored("trial")] == [1, 2, 3]
    store.keep("trial", PAGE, [{"value": 4}], part="ours")
    assert [row["value"] for row in store.stored("trial")] == [1, 3, 4]


def test_rows_of_different_engines_are_not_put_into_one_page(docs, engine):
    render.publish(PAGE, TEXT)
    file = store.RESULTS / "trial.jsonl"
    first, *others = file.read_text("utf-8").splitlines()
    changed = json.dumps(json.loads(first) | {"engine": "b" * 12, "commit": "other12"})
    file.write_text("\n".join([changed, *others]) + "\n", encoding="utf-8")
    before = (docs / PAGE).read_text("utf-8")
    with pytest.raises(render.MixedEnginesError, match=r"2 engines.*bbbbbbbbbbbb.*other12"):
        render.render_all()
    assert (docs / PAGE).read_text("utf-8") == before


def test_without_rows_of_ours_there_is_no_page(docs, engine, capsys):
    store.keep("trial", PAGE, [{"block": 0, "text": "theirs"}], foreign=True)
    render.render_all(["trial"])
    assert "nothing is stored" in capsys.readouterr().out
    assert not (docs / PAGE).exists()


def test_a_benchmark_may_render_its_rows_itself(docs, engine, monkeypatch):
    monkeypatch.setattr(
        registry, "render", lambda page, rows: f"{page}: {sum(row['value'] for row in rows)}\n", raising=False
    )
    render.publish_rows(PAGE, [{"value": np.float64(1.5)}, {"value": np.int64(2)}])
    assert (docs / PAGE).read_text("utf-8").endswith(f"{PAGE}: 3.5\n")


def test_a_page_that_nobody_owns_is_refused(docs, engine):
    with pytest.raises(ValueError, match=r"no benchmark writes _generated/other\.md"):
        render.publish("_generated/other.md", TEXT)


def test_figures_make_a_history_and_outlive_pages(docs, engine):
    store.keep_figures("trial", {"ratio": 1.0})
    engine("b" * 12)
    render.publish(PAGE, TEXT)
    store.keep_figures("trial", {"ratio": np.float64(2.0)})
    assert [row["value"] for row in history.figures(store.stored("trial"))["ratio"]] == [1.0, 2.0]


@pytest.mark.parametrize(("after", "worse"), [(1.2, False), (1.3, True), (0.5, False)])
def test_a_watched_figure_that_grows_by_more_than_a_quarter_is_shown(docs, engine, after, worse, capsys):
    name = history.WATCHED[0]
    for value in (1.0, after):
        store.keep_figures("trial", {name: value, "another": 5 * value})
    assert history.main() == int(worse)
    assert capsys.readouterr().out.count("WORSE") == int(worse)


def test_the_table_of_the_history_marks_what_became_worse(docs, engine):
    for value, digest in ((1.0, "a"), (1.1, "b"), (1.5, "c")):
        engine(digest * 12)
        store.keep_figures("trial", dict.fromkeys(history.WATCHED, value))
    lines = history.history_table(store.stored("trial")).splitlines()[2:]
    assert [line.count("slower") for line in lines] == [0, 0, 2]


def test_times_of_machines_with_other_cores_are_not_compared(docs, engine):
    rows = [{"figure": history.WATCHED[0], "value": v, "machine": {"cores": c}} for v, c in ((1.0, 2), (2.0, 8))]
    assert not history.regressed(rows)
    assert history.regressed([row | {"machine": {"cores": 2}} for row in rows])


def test_one_thing_has_no_plural():
    assert [markdown.counted(count, "seed") for count in (1, 2)] == ["1 seed", "2 seeds"]
