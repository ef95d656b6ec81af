"""Fixtures shared by all tests."""

from __future__ import annotations

import html
import io
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from tests.processes import start

from robustphase.problem import Problem, build_problem
from robustphase.rows import MemoryRows
from robustphase.rows.io import hdf5_probe
from robustphase.simulate import World

# Statistical code is slower than hypothesis expects; the examples are the same on every run so that CI is repeatable.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("repeatable")


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


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Files are closed and renamed as ever, but nobody waits until a disk has them: no test takes away the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: os.fstat(descriptor) and None)
        yield


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are drawn as ever, but of what matplotlib makes of them only the texts are written.

    For tests of the words, tables and numbers of a page, most of whose time goes into laying out and writing its charts. Fixtures
    of a wider scope are made before this one, so that their pages are whole.
    """
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    draw = Figure.savefig

    def write_texts(figure: Figure, file: object, **options: object) -> None:
        if not isinstance(file, io.StringIO):  # Not part of a page.
            draw(figure, file, **options)
            return
        said = (html.escape(text.get_text()) for text in figure.findobj(Text) if text.get_text())
        file.write(f"<svg>{''.join(f'<text>{one}</text>' for one in said)}</svg>")

    monkeypatch.setattr(Figure, "savefig", write_texts)


@pytest.fixture
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiments that are not told how many processes to take stay in this one; others have tests of their own."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture
def forked_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """HDF5 files are looked at in a process that need not import anything first; whether it survives has tests of its own."""

    def look(
        command: list[str], *, input: bytes, timeout: float, **options: object
    ) -> subprocess.CompletedProcess[bytes]:
        assert command[-1] == hdf5_probe.__file__
        program = (
            "import io, runpy, sys; sys.stdin = io.TextIOWrapper(io.BytesIO(sys.argv[1].encode()))\n"
            f"runpy.run_path({hdf5_probe.__file__!r}, run_name='__main__')"
        )
        process = start(program, input.decode())
        told, said = process.communicate(timeout)
        return subprocess.CompletedProcess(command, process.wait(), told.encode(), said.encode())

    forked = SimpleNamespace(run=look, TimeoutExpired=TimeoutError)
    monkeypatch.setattr(hdf5_probe, "subprocess", forked)


@pytest.fixture
def problem_of() -> Callable[..., Problem]:
    """The standardised problem of some worlds that share their covariates, one column for each, nothing screened."""

    def build(*worlds: World, level: float = 0.1, unknown_mean: bool = False, floor: float | None = None) -> Problem:
        responses = np.stack([world.y for world in worlds], axis=1).astype(np.float64)
        weights, levels = np.ones((len(responses), 1)), np.full(len(worlds), level)
        problem = build_problem(MemoryRows(worlds[0].A), responses, weights, levels, unknown_mean=unknown_mean)
        return problem if floor is None else problem.floored(floor)

    return build
