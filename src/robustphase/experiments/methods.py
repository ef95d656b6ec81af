"""Who may take part in a comparison: ours, the baselines, the oracle, and any function of the user.

A method is called as ``method(A, y, contamination, noise_mean_known)`` and answers with a signal, or with an object that has a
``signal`` (or ``signal_``) and may say whether it ``converged``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robustphase import baselines
from robustphase.estimator import RobustPhaseRetrieval

Method: TypeAlias = Callable[[NDArray[Any], NDArray[Any], float, bool], Any]

#: The method that is told which samples are clean; it is run on the world itself.
ORACLE = "oracle"
#: Ours, with the contamination given and found.
OURS = ("robustphase", "robustphase-auto")


class Answer(NamedTuple):
    """A signal, and whether the method says that it converged."""

    signal: NDArray[Any]
    converged: bool


def read_answer(answer: Any, n: int) -> Answer:
    """Signal and convergence of whatever a method has returned."""
    signal = getattr(answer, "signal", getattr(answer, "signal_", answer))
    converged = bool(getattr(answer, "converged", getattr(answer, "converged_", True)))
    signal = np.asarray(signal)
    if signal.shape != (n,):
        raise ValueError(f"a method must return a signal of shape ({n},), got shape {signal.shape}")
    if not np.isfinite(signal).all():
        raise ValueError("the signal holds NaN or infinite entries")
    return Answer(signal, converged)


def find_methods(methods: str | Iterable[str] | Mapping[str, Method]) -> dict[str, Method | None]:
    """Callables by name, in the order given; the oracle, which needs the world, is None.

    Parameters
    ----------
    methods : str, iterable of str, or mapping
        Names, or names with callables; in a mapping a name that is known may stand with None.
    """
    if isinstance(methods, Mapping):
        named = {str(name): method if callable(method) else _known(name) for name, method in methods.items()}
    else:
        names = (methods,) if isinstance(methods, str) else tuple(methods)
        named = {name: _known(name) for name in names}
    if not named:
        raise ValueError(f"methods is empty. Pass some of {', '.join(known_methods())}.")
    return named


def known_methods() -> tuple[str, ...]:
    """Names that a comparison knows."""
    return (*OURS, *baselines.METHODS, ORACLE)


def _known(name: str) -> Method | None:
    if name == ORACLE:
        return None
    if name == "robustphase":
        return _ours
    if name == "robustphase-auto":
        return _ours_auto
    if name in baselines.METHODS:
        return partial(_rival, name=name)
    close = get_close_matches(str(name), known_methods(), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"methods must be among {', '.join(map(repr, known_methods()))}; got {name!r}.{hint}")


def _ours(A: NDArray[Any], y: NDArray[Any], contamination: float, noise_mean_known: bool) -> Any:
    return _fitted(A, y, contamination, noise_mean_known)


def _ours_auto(A: NDArray[Any], y: NDArray[Any], contamination: float, noise_mean_known: bool) -> Any:
    return _fitted(A, y, "auto", noise_mean_known)


def _fitted(A: NDArray[Any], y: NDArray[Any], contamination: float | str, noise_mean_known: bool) -> Any:
    noise_mean = "zero" if noise_mean_known else "unknown"
    return RobustPhaseRetrieval(contamination, noise_mean=noise_mean, nonfinite="drop").fit(A, y)


def _rival(A: NDArray[Any], y: NDArray[Any], contamination: float, noise_mean_known: bool, *, name: str) -> Any:
    """A baseline on the samples that it can compute with, which is what every careful user would hand it."""
    return baselines.METHODS[name](A, y, nonfinite="drop")
