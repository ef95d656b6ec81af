"""Keywords that several functions share: all are described and taken, and no others."""

from __future__ import annotations

import inspect
import re
from typing import get_args, get_type_hints

import numpy as np
import pytest

import robustphase as rp
from robustphase.experiments import compare, red_team
from robustphase.simulate import SampleOracle, corrupt, make_camera, make_counts, make_world

SIGNAL, ROWS = np.ones(2), np.eye(2)
#: Functions that take options, each with what it cannot do without.
CALLS = {
    **{method: {"A": ROWS, "y": SIGNAL} for method in rp.baselines.METHODS.values()},
    rp.spectral_init: {"A": ROWS, "y": SIGNAL},
    make_world: {},
    make_counts: {},
    make_camera: {},
    SampleOracle: {"truth": SIGNAL},
    corrupt: {"A": ROWS, "y": SIGNAL, "truth": SIGNAL, "attack": "none", "contamination": 0.1},
    compare: {"methods": "oracle", "attacks": "none", "contaminations": 0.0},
    red_team: {"estimator": None},
}


def keywords_of(function):
    """Names in the signature, and names of the options behind it."""
    named = [each.name for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]
    body = function.__init__ if inspect.isclass(function) else function
    (options,) = get_args(get_type_hints(body)["options"])
    return named, list(get_type_hints(options))


def test_what_is_not_taken_is_refused_by_a_list_of_what_is(case):
    for function, needed in CALLS.items():
        named, options = keywords_of(function)
        with case(function.__name__), pytest.raises(TypeError) as refused:
            function(**needed, zzz=1)
        said = re.fullmatch(r"(\w+)\(\) got an unexpected keyword argument 'zzz'\. It takes (.*)\.", str(refused.value))
        with case(function.__name__):
            # All options that the type names have a default, and there are no others.
            assert said.group(1) == function.__name__
            assert sorted(said.group(2).split(", ")) == sorted(named + options)


def test_every_option_is_described(case):
    for function in CALLS:
        named, options = keywords_of(function)
        described = {
            name
            for line in re.findall(r"^    (\w[\w, ]*?)(?: :.*)?$", function.__doc__, re.M)
            for name in line.split(", ")
        }
        with case(function.__name__):
            assert {*named, *options} <= described


@pytest.mark.parametrize(("wrong", "right"), [("nois_std", "noise_std"), ("atack", "attack")])
def test_a_misspelling_is_told_what_was_meant(wrong, right):
    with pytest.raises(TypeError, match=rf"'{wrong}'\. Did you mean '{right}'\?"):
        make_world(10, 50, **{wrong: 0.1})


def test_a_call_leaves_the_defaults_as_they_are():
    first = make_world(5, 20, seed=0)
    make_world(5, 20, noise="gaussian", norm=3.0, seed=1)
    np.testing.assert_array_equal(make_world(5, 20, seed=0).y, first.y)
