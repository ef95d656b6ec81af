"""Importing the package is light; every public name is there when it is asked for."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import robustphase as rp

#: scikit-learn's base alone loads about twice as many.
MOST_MODULES = 700


def run_afresh(program: str) -> str:
    """What the program prints in an interpreter that has imported nothing yet."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_importing_the_package_loads_few_modules_and_no_heavy_one():
    count, heavy = run_afresh(
        "import sys, robustphase\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'dask', 'h5py', 'zarr', 'torch'}\n"
        "print(len(sys.modules), sorted(heavy & set(sys.modules)), sep=';')"
    ).split(";")
    assert int(count) <= MOST_MODULES
    assert heavy == "[]"


def test_the_closed_forms_do_not_wait_for_scikit_learn():
    assert run_afresh("import sys, robustphase; robustphase.population; print('sklearn' in sys.modules)") == "False"


def test_each_public_name_is_there_and_listed(case):
    for name in rp.__all__:
        with case(name):
            assert getattr(rp, name) is getattr(rp, name)
            assert name in dir(rp)


def test_a_star_import_brings_every_public_name():
    assert run_afresh(
        "from robustphase import *\nimport robustphase\nprint(set(robustphase.__all__) <= set(dir()))"
    ) == ("True")


def test_names_for_type_checkers_are_the_names_that_are_loaded():
    tree = ast.parse(Path(rp.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    homes = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {name for name, home in homes.items() if home == "robustphase"} == rp._MODULES
    assert {name: home for name, home in homes.items() if home != "robustphase"} == {
        name: f"robustphase.{home}" for name, home in rp._HOMES.items()
    }
    assert set(rp.__all__) - {"__version__"} == set(homes)


def test_the_rooms_are_attributes_without_an_import_of_their_own(case):
    for name in sorted(rp._ROOMS):
        with case(name):
            assert getattr(rp, name).__name__ == f"robustphase.{name}"


def test_an_unknown_name_is_refused_as_in_any_module():
    with pytest.raises(AttributeError, match="module 'robustphase' has no attribute 'signal'"):
        _ = rp.signal


def test_an_estimator_is_unpickled_where_nothing_was_imported(tmp_path):
    (tmp_path / "estimator.pickle").write_bytes(pickle.dumps(rp.RobustPhaseRetrieval(contamination=np.float64(0.2))))
    path = str(tmp_path / "estimator.pickle")
    assert run_afresh(f"import pickle; print(pickle.load(open({path!r}, 'rb')).contamination)") == "0.2"
