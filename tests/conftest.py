"""Fixtures shared by all tests."""

from __future__ import annotations

import html
import io
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import settings
from tests.effort import THOROUGH

from robustphase.problem import Problem, build_problem
from robustphase.rows import MemoryRows
from robustphase.simulate import World

# Statistical code is slower than hypothesis expects; the examples are the same on every run, so that CI is repeatable, but
# for thorough runs, which look for what has not been seen.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("thorough" if THOROUGH else "repeatable")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)


@pytest.fixture(scope="session")
def case():
    """``with case(...)`` inside a loop: whatever goes wrong says in which case it did."""

    @contextmanager
    def named(*case):
        try:
            yield
        except BaseException as error:  # also pytest.fail, which is no Exception
            error.add_note(f"in the case: {', '.join(map(str, case))}")
            raise

    return named


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are drawn as ever, but of what matplotlib makes of them only the texts are written.

    For tests of the words, tables and numbers of a page, most of whose time goes into laying out and writing its charts. Fixtures
    of a wider scope are made before this one, so that their pages are whole.
    """
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    def write_texts(figure: Figure, file: io.StringIO, **options: object) -> None:
        said = (html.escape(text.get_text()) for text in figure.findobj(Text) if text.get_text())
        file.write(f"<svg>{''.join(f'<text>{one}</text>' for one in said)}</svg>")

    monkeypatch.setattr(Figure, "savefig", write_texts)


@pytest.fixture
def problem_of() -> Callable[..., Problem]:
    """The standardised problem of some worlds that share their covariates, one column for each, nothing screened."""

    def build(*worlds: World, level: float = 0.1, unknown_mean: bool = False, floor: float | None = None) -> Problem:
        responses = np.stack([world.y for world in worlds], axis=1).astype(np.float64)
        weights, levels = np.ones((len(responses), 1)), np.full(len(worlds), level)
        problem = build_problem(MemoryRows(worlds[0].A), responses, weights, levels, unknown_mean=unknown_mean)
        return problem if floor is None else problem.floored(floor)

    return build
