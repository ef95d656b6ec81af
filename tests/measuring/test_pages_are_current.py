"""The figures of the docs are those of the present engine."""

from __future__ import annotations

from benchmarks import stale


def test_every_page_and_picture_was_measured_with_the_present_engine():
    # `python -m benchmarks stale --run` measures what is not.
    assert [str(problem) for problem in stale.problems()] == []
