"""Every number that steers the engine says what kind of number it is, and why it has its value."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass

import pytest

import robustphase
from robustphase.constants import KINDS, budget, constants, empirical, numeric, varied
from robustphase.initialise.screening import SCREENING

ROOMS = ("rows", "likelihood", "problem", "initialise", "descend", "recover")
STAGES = {
    "NOISE", "COMPARISON", "DENSITY", "PROBLEM", "OBJECTIVE", "NEWTON", "ACCELERATION", "STEPS", "CLIMB", "FIT", "CONSISTENCY",
    "SCREENING", "SEARCH", "SPECTRA", "NORMS", "START", "SELECTION", "OPINION", "CERTIFICATE", "ENGINE",
    "STANDARD", "PRODUCTS",
}  # fmt: skip


def options_of_the_engine():
    """Instances of dataclasses that the modules of the engine hold under a name in capitals."""
    found = {}
    for info in pkgutil.walk_packages(robustphase.__path__, "robustphase."):
        if info.name.split(".")[1] in ROOMS:
            module = importlib.import_module(info.name)
            held = {name: value for name, value in vars(module).items() if name.isupper()}
            found |= {
                name: value for name, value in held.items() if is_dataclass(value) and not isinstance(value, type)
            }
    return found


def test_every_stage_lists_its_constants_with_kind_and_reason():
    stages = options_of_the_engine()
    assert stages.keys() >= STAGES
    for stage, options in stages.items():
        listed = list(constants(options))
        assert [constant.name for constant in listed] == [part.name for part in fields(options)], stage
        for constant in listed:
            name = f"{stage}.{constant.name}"
            assert constant.kind in KINDS, name
            assert len(constant.reason.split()) >= 2, name
            assert constant.value == getattr(options, constant.name), name


def test_constants_cannot_be_changed_in_passing():
    for stage, options in options_of_the_engine().items():
        with pytest.raises(FrozenInstanceError):
            setattr(options, fields(options)[0].name, 0)
        assert type(options)() == options, stage


def test_values_are_varied_for_a_while_and_restored_also_after_an_error():
    before = SCREENING.crowded, SCREENING.rounds
    with varied(SCREENING, crowded=9.0, rounds=1):
        assert (SCREENING.crowded, SCREENING.rounds) == (9.0, 1)
    assert (SCREENING.crowded, SCREENING.rounds) == before
    with pytest.raises(ZeroDivisionError), varied(SCREENING, crowded=9.0, rounds=1):
        raise ZeroDivisionError
    assert (SCREENING.crowded, SCREENING.rounds) == before


def test_a_name_that_is_no_constant_is_refused_and_nothing_is_changed():
    before = SCREENING.crowded
    with pytest.raises(AttributeError), varied(SCREENING, crowded=9.0, crowdedd=9.0):
        raise AssertionError("the block must not run")
    assert before == SCREENING.crowded


def test_nested_options_are_listed_under_dotted_names():
    @dataclass(frozen=True)
    class Inner:
        a: int = budget(1, "work")
        b: float = numeric(1e-9, "rounding")

    @dataclass(frozen=True)
    class Outer:
        c: float = empirical(0.3, "experience")
        inner: Inner = Inner()

    listed = list(constants(Outer()))
    assert [(constant.name, constant.kind) for constant in listed] == [
        ("c", "empirical"),
        ("inner.a", "budget"),
        ("inner.b", "numeric"),
    ]
    assert listed[1].reason == "work"
