"""Parameters of the estimator, checked together when a fit begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.initialise.start import METHODS as STARTS
from robustphase.means import METHODS as MEAN_ESTIMATORS
from robustphase.rows import RowSource
from robustphase.rows.source import Array
from robustphase.validation import NONFINITE, check_choice, check_contamination, check_fraction


def check_parameters(estimator: Any) -> float | str:
    """Refuse what no fit could use; return the contamination."""
    level = check_contamination(estimator.contamination, allow_auto=True)
    if isinstance(estimator.init, str):
        check_choice("init", estimator.init, STARTS)
    for name, choices in (
        ("noise_mean", ("zero", "unknown")),
        ("mean_estimator", tuple(MEAN_ESTIMATORS)),
        ("step", ("newton", "paper")),
        ("nonfinite", NONFINITE),
    ):
        check_choice(name, getattr(estimator, name), choices)
    check_fraction("delta", estimator.delta)
    for name in ("batches", "max_iter"):
        value = getattr(estimator, name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a positive whole number, got {value!r}.")
    tol = estimator.tol
    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.integer, np.floating)) or not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a number that is zero or positive, such as 1e-6, got {tol!r}.")
    return level


def check_start(init: Any, source: RowSource) -> Array | None:
    """The starting point, if one was given."""
    if isinstance(init, str):
        return None
    start, n = np.asarray(init), source.shape[1]
    if start.shape != (n,) or start.dtype.kind not in "fciub":
        raise ValueError(
            f"init must be one of {', '.join(map(repr, STARTS))} or an array of {n} numbers, one per column of A, "
            f"got an array of shape {start.shape} and dtype {start.dtype}."
        )
    if start.dtype.kind == "c" and source.dtype.kind != "c":
        raise ValueError("init is complex but A is real. Pass init.real, or complex rows.")
    if not np.isfinite(start).all() or not np.any(start):
        raise ValueError("init must be finite and not zero: at zero the gradient vanishes and there is no way to go.")
    return start.astype(np.result_type(source.dtype, np.float64))


def as_seed(random_state: Any) -> int:
    """A seed for NumPy's generators; None is as good as 0, so that fits repeat."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    raise ValueError(f"random_state must be None, a whole number or a numpy RandomState, got {random_state!r}.")
