"""Options of a command become one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from robustphase.cli.app import as_request

GENERAL = {"quiet": True, "debug": False}


@dataclass(frozen=True)
class Open:
    data: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class Closed:
    data: str


def test_options_without_a_field_are_settings_and_general_ones_are_neither():
    asked = as_request(Open, {"data": "a.npz", "tol": 1e-6, "step": "newton", **GENERAL})
    assert asked == Open("a.npz", {"tol": 1e-6, "step": "newton"})


def test_a_request_without_settings_refuses_an_option_that_it_does_not_know():
    assert as_request(Closed, {"data": "a.npz", **GENERAL}) == Closed("a.npz")
    with pytest.raises(TypeError, match="tol"):
        as_request(Closed, {"data": "a.npz", "tol": 1e-6})
