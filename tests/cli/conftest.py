"""A small data set, and the command line without a process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from click.testing import CliRunner, Result

import robustphase as rp
from robustphase.cli.app import application

Run: TypeAlias = Callable[..., Result]


@pytest.fixture
def run(tmp_path, monkeypatch, sketched) -> Run:
    """Run a command in an empty folder; anything but an exit is a failure of the test. Charts of reports have texts only."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(application, [str(argument) for argument in arguments], prog_name="robustphase")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == code, f"{result.exit_code}: {result.output}"
        return result

    return call


@pytest.fixture(scope="session")
def world() -> rp.simulate.World:
    return rp.simulate.make_world(n=9, m=450, contamination=0.1, attack="leverage", noise_mean=2.0, seed=3)


@pytest.fixture
def data(tmp_path, world) -> Path:
    path = tmp_path / "data.npz"
    np.savez(path, A=world.A, y=world.y)
    return path


def leftovers(folder: Path) -> list[str]:
    """Temporary files that somebody has left behind."""
    return [path.name for path in folder.rglob("*") if path.name.startswith(".") or path.suffix in (".tmp", ".part")]
