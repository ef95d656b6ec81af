"""Fixtures shared by all tests."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import settings

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
