"""What is done before and after each example of the gallery."""

from __future__ import annotations

import warnings
from typing import Any

import matplotlib.pyplot as plt

_filters: list[Any] = []


def quiet_plots(gallery_conf: dict[str, Any], name: str, when: str) -> None:
    """No example inherits figures or settings of another."""
    plt.close("all")
    plt.rcdefaults()
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})


def strict_warnings(gallery_conf: dict[str, Any], name: str, when: str) -> None:
    """While an example runs, a warning is an error."""
    if when == "before":
        _filters[:] = [warnings.filters[:]]
        warnings.simplefilter("error")
    else:
        warnings.filters[:] = _filters.pop()
