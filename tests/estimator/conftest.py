"""Worlds shared by the tests of the estimator."""

from __future__ import annotations

import pytest

from robustphase.simulate import make_world


@pytest.fixture(scope="session")
def world():
    return make_world(20, 1000, contamination=0.1, attack="leverage", seed=0)


@pytest.fixture(scope="session")
def clean():
    return make_world(15, 600, contamination=0.0, attack="none", noise="gaussian", seed=1)
