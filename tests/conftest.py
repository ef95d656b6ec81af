"""Fixtures shared by all tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

# Statistical code is slower than hypothesis expects; the examples are the same on every run so that CI is repeatable.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("repeatable")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260101)
