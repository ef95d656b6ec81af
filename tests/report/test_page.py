"""The page: its numbers are those of the result, its text is text, and it needs nothing but itself."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from robustphase.plot.signals import turned
from robustphase.report import load_result, render_report, save_result, write_report
from robustphase.report.blocks import percent, seconds_text
from robustphase.report.rejection_causes import counts, worst_samples
from robustphase.report.verdict import checks, guarantee, verdict


def test_the_numbers_of_the_page_are_those_of_the_result_file(tmp_path, diagnostics, comparisons, page, read):
    save_result(tmp_path / "result.npz", diagnostics)
    stored, values = load_result(tmp_path / "result.npz"), read(page).values
    for name in (
        "certificate",
        "noise_mean",
        "noise_scale",
        "expected_error",
        "true_error",
        "contamination_used",
        "seconds",
    ):
        # Certificates and times of methods and stages follow further down the page.
        assert float(values[name][0]) == getattr(stored, name)
    assert values["passes"][0] == str(stored.passes)
    for name in ("fingerprint", "dtype", "data_name", "command"):
        assert values[name] == [getattr(stored, name)]
    for name in ("m", "n", "seed"):
        assert values[name] == [str(getattr(stored, name))]
    assert values["rejected"] == [str(stored.rejected.sum())]
    assert values["converged"] == [str(stored.converged)]
    assert {name: int(values[f"reason-{name}"][0]) for name in counts(stored)} == counts(stored)
    assert float(values["law-degrees"][0]) == stored.noise_model.degrees


def test_the_tables_repeat_the_result(diagnostics, page, read):
    found = read(page)
    assert [int(row["data-row"]) for row in found.rows("data-row")] == [s.row for s in worst_samples(diagnostics)]
    assert [float(v) for v in found.values["weight"]] == [s.weight for s in worst_samples(diagnostics)]
    assert len(found.rows("data-stage")) == len(diagnostics.history["stage"])
    np.testing.assert_array_equal([float(v) for v in found.values["moved"]], diagnostics.history["moved"])
    np.testing.assert_array_equal([float(v) for v in found.values["score"]], diagnostics.history["score"])


def test_text_from_outside_stays_text(diagnostics, page, read):
    found = read(page)
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"img", "script", "iframe", "object", "a"}
    assert page.count("<b>") == len(checks(diagnostics))
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    assert diagnostics.data_name in found.text
    assert "<script>alert(2)</script>" in found.text
    assert "lost <b>badly</b>" in found.text


@pytest.mark.usefixtures("sketched")
def test_no_field_can_become_markup(plain, read):
    fields = ("data_name", "command", "message")
    hostile = ("</title><script>alert(1)</script>", "--></style>]]>", "'\" onload=alert(1)", "\udcff\x00")
    page = render_report(
        replace(plain, converged=False, **{field: " ".join(one + field for one in hostile) for field in fields})
    )
    found = read(page)
    assert not any(tag == "script" for tag, _ in found.elements)
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    for one in hostile:
        for field in fields:
            assert re.sub("[\x00\udcff]", "\ufffd", one + field) in " ".join(found.texts), (ascii(one), field)
    assert page.count("</style>") == 1
    page.encode("utf-8")


@pytest.mark.usefixtures("sketched")
def test_hostile_parameters_and_versions_stay_text(plain, read):
    bad = "<script>alert(1)</script>"
    found = read(render_report(replace(plain, parameters={bad: bad}, versions={bad: bad}, dtype=bad, fingerprint=bad)))
    assert not any(tag == "script" for tag, _ in found.elements)


def test_the_page_needs_nothing_but_itself(page, read):
    found = read(page)
    for tag, attributes in found.elements:
        for name in ("src", "href", "data", "action", "srcset", "poster"):
            value = attributes.get(name)
            # A name on the page itself, or data inside it.
            assert value is None or value.startswith(("data:", "#")), (tag, name)
    assert not re.search(r"@import|url\((?!#)", page)
    assert [a["content"] for t, a in found.elements if t == "meta" and "http-equiv" in a] == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    ]


def test_light_dark_phone_and_paper_are_thought_of(page):
    assert "prefers-color-scheme:dark" in page
    assert 'name="viewport"' in page
    assert "@media print" in page
    used, defined = set(re.findall(r"var\((--rp-[a-z0-9]+)\)", page)), set(re.findall(r"(--rp-[a-z0-9]+):", page))
    assert used <= defined


def test_every_method_is_compared_in_order_and_with_its_picture(page, comparisons, read):
    found = read(page)
    assert [row["data-method"] for row in found.rows("data-method")] == [c["method"] for c in comparisons]
    assert [row.get("class") for row in found.rows("data-method")] == ["ours", None, None]
    assert [float(v) for v in found.values["relative_error"]] == [c["relative_error"] for c in comparisons]
    without = sum(
        tag == "image" for tag, _ in read(re.sub(r"<section><h2>Beside.*?</section>", "", page, flags=re.S)).elements
    )
    # The truth and the two methods that have a signal.
    assert sum(tag == "image" for tag, _ in found.elements) - without == 3


def test_comparisons_that_cannot_be_shown_are_refused(diagnostics):
    with pytest.raises(ValueError, match=r"comparisons\[0\] has unknown keys: error\. Known keys are method"):
        render_report(diagnostics, [{"method": "a", "error": 1}])
    with pytest.raises(ValueError, match="has no method"):
        render_report(diagnostics, [{"seconds": 1}])
    with pytest.raises(ValueError, match="has 3 entries, the recovered one 100"):
        render_report(diagnostics, [{"method": "a", "signal": np.ones(3)}])


def test_the_verdict_says_what_matters_in_one_sentence(diagnostics, plain):
    said = verdict(diagnostics)
    assert said.startswith("Converged: ")
    assert f"{diagnostics.rejected.sum():,} of 3,000 samples" in said
    assert percent(diagnostics.expected_error) in said
    assert said.count(". ") == 0
    assert percent(plain.certificate) in verdict(replace(plain, standard_errors=None))
    assert "do not bound the error" in verdict(replace(plain, standard_errors=None, certificate=1.3))
    failed = verdict(replace(plain, converged=False))
    assert failed.startswith("Not converged: ")
    assert "should not be relied on" in failed


def test_the_guarantee_is_the_certificate(plain):
    assert percent(plain.certificate) in guarantee(plain)
    assert "cannot vouch" in guarantee(replace(plain, certificate=np.inf))
    # Without a statement a fifth was allowed for, whatever was found.
    assert plain.contamination_used < plain.certified_level == 0.2
    assert percent(0.2) in guarantee(plain)
    assert replace(plain, contamination_told=0.1, contamination_used=0.1).certified_level == 0.1


@pytest.mark.usefixtures("sketched")
def test_a_fit_that_failed_shows_why(plain, read):
    found = read(render_report(replace(plain, converged=False, message="the signal did not settle. Try more samples.")))
    assert "The signal did not settle. Try more samples." in found.text
    assert [a["data-value"] for _, a in found.elements if a.get("data-check") == "settled"] == ["False"]


def test_checks_point_at_what_is_wrong(plain, diagnostics):
    def failed(e):
        return [check.name for check in checks(e) if not check.passed]

    assert failed(plain) == []
    assert failed(replace(plain, certificate=0.9)) == []
    assert failed(replace(plain, certificate=1.1)) == ["certificate"]
    assert failed(replace(plain, contamination_told=0.01)) == ["share rejected"]
    assert failed(replace(plain, contamination_told="auto", contamination_used=0.42)) == ["share rejected"]
    assert failed(replace(plain, converged=False)) == ["settled"]
    # The bad samples of each kind stand together in these data.
    assert "spread over the rows" in failed(diagnostics)


@pytest.mark.usefixtures("sketched")
def test_the_call_that_reproduces_the_fit_is_the_one_made(diagnostics, read):
    call = (
        "rp.RobustPhaseRetrieval(contamination=0.12, noise_mean='unknown', nonfinite='drop', random_state=3).fit(A, y)"
    )
    assert call in read(render_report(diagnostics)).text


@pytest.mark.usefixtures("sketched")
def test_a_long_history_is_drawn_as_lines_and_listed_with_a_gap(plain, read):
    steps = 40
    history = {name: np.full(steps, np.nan) for name in plain.history} | {
        "stage": np.full(steps, "descent"),
        "moved": np.geomspace(1, 1e-6, steps),
        "candidates": np.ones(steps, int),
        "passes": np.arange(steps),
    }
    found = read(render_report(replace(plain, history=history)))
    assert len(found.rows("data-stage")) == 16
    assert "24 more steps" in found.text
    assert "How far the signal moved, by step" in found.text


def test_signals_are_turned_to_a_common_sign(rng):
    truth = rng.standard_normal(20) + 1j * rng.standard_normal(20)
    np.testing.assert_allclose(turned(np.exp(0.7j) * truth, truth), truth)
    np.testing.assert_allclose(turned(-truth.real, truth.real), truth.real)
    assert turned(rng.standard_normal(20)).sum() > 0
    rotated = turned(truth)
    assert rotated.sum().real > 0
    assert abs(rotated.sum().imag) < 1e-9
    np.testing.assert_array_equal(turned(np.zeros(3)), 0)
    np.testing.assert_allclose(turned(np.array([-2.0, 1.0, 1.0])), [2, -1, -1])


@pytest.fixture
def empty(plain):
    return replace(
        plain,
        signal=np.zeros(plain.n),
        initial_signal=np.zeros(plain.n),
        standard_errors=None,
        certificate=np.inf,
        converged=False,
        noise_model=None,
    )


@pytest.mark.usefixtures("sketched")
def test_an_empty_answer_still_has_a_page(empty):
    assert "∞" in render_report(empty)


def test_an_empty_answer_without_any_sample_still_has_a_page_with_charts(empty):
    assert "∞" in render_report(replace(empty, weights=np.zeros(empty.m)))


@pytest.mark.usefixtures("sketched")
def test_where_no_sample_was_rejected_the_page_says_so(plain):
    assert "No sample was rejected." in render_report(replace(plain, weights=np.ones(plain.m)))


def test_shares_and_times_are_written_for_people():
    shares = {0.1: "10%", 0.0736: "7.4%", 0: "0%", 0.00012: "0.012%", 1.014: "101.4%", np.inf: "∞"}
    assert {share: percent(share) for share in shares} == shares
    times = {None: "–", np.nan: "–", 1.234: "1.23 s", 59.6: "60 s", 600.0: "10 min"}
    assert {seconds: seconds_text(seconds) for seconds in times} == times


@pytest.mark.usefixtures("sketched")
def test_a_report_is_written_whole_or_not_at_all(tmp_path, plain, monkeypatch):
    path = tmp_path / "report.html"
    write_report(path, plain)
    whole = path.read_text("utf-8")
    assert whole == render_report(plain)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"could not write '.*report\.html': No space left on device"):
        write_report(path, replace(plain, certificate=0.0))
    assert path.read_text("utf-8") == whole
    assert os.listdir(tmp_path) == ["report.html"]
