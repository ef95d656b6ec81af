"""Who may take part in a comparison: ours, the baselines, the oracle, and any function of the user.

A method is called as ``method(A, y, contamination, noise_mean_known)`` and answers with a signal, or with an object that has a
``signal`` (or ``signal_``) and may say whether it ``converged``.

The oracle is the yardstick: least squares started at the truth and told which samples are clean. No method can be expected to do
better on Gaussian noise. With heavy tails some do, because they also weigh down clean samples with large noise; their ratio is
then below one.
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

#: Most Gauss-Newton steps, and the relative step at which they stop.
STEPS, SETTLED = 30, 1e-10


def oracle_least_squares(
    A: NDArray[Any], y: NDArray[Any], truth: NDArray[Any], *, background: float | None = None
) -> NDArray[Any]:
    """Least squares on clean samples, by Gauss-Newton steps from the truth.

    With a background, the noise mean, one is fitted as well, from there.
    """
    x, constant = truth, background or 0.0
    with_background = [] if background is None else [np.ones((y.size, 1))]
    for _ in range(STEPS):
        projections = A @ x
        slopes = 2.0 * projections.conj()[:, np.newaxis] * A
        parts = [slopes.real, -slopes.imag] if np.iscomplexobj(slopes) else [slopes]
        design = np.hstack((*parts, *with_background))
        # Normal equations: designs are well conditioned but for what does not show at all, and this is the cost of every world.
        normal = design.T @ design
        if len(parts) == 2:
            # The phase is free: held by a term of its own, which the right side knows nothing of, it stays as it is.
            phase = np.concatenate((-x.imag, x.real, np.zeros(len(with_background))))
            normal += np.outer(phase, phase) * normal.trace() / (2 * x.size * (phase @ phase))
        step = np.linalg.lstsq(normal, design.T @ (y - np.abs(projections) ** 2 - constant), rcond=None)[0]
        x = x + (step[: x.size] if len(parts) == 1 else step[: x.size] + 1j * step[x.size : 2 * x.size])
        constant += float(step[-1]) if with_background else 0.0
        if np.linalg.norm(step) <= SETTLED * np.linalg.norm(x):
            break
    return x


Method: TypeAlias = Callable[[NDArray[Any], NDArray[Any], float, bool], Any]

#: The method that is told which samples are clean; it is run on the world itself.
ORACLE = "oracle"
#: Ours, with the contamination given and found.
OURS = ("robustphase", "robustphase-auto")
#: What can be attacked by name: ours, the paper's algorithm (its steps, no polish), and the baselines.
ATTACKABLE = ("ours", "paper", *baselines.METHODS)


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


class MethodEstimator:
    """A method as an object with ``fit(A, y)`` and ``signal_``, for what asks for one.

    Parameters
    ----------
    method : str or callable
        A name that a comparison knows, other than the oracle; or ``method(A, y, contamination, noise_mean_known)``.
    contamination : float, default=0.1
        What the method is told of it.
    noise_mean_known : bool, default=True
        Whether it is told that the noise has mean zero.

    Attributes
    ----------
    signal_ : ndarray of shape (n,)
        Its answer.
    converged_ : bool
        Whether it says that it converged.
    """

    def __init__(self, method: str | Method, contamination: float = 0.1, noise_mean_known: bool = True) -> None:
        self.method, self.contamination, self.noise_mean_known = method, contamination, noise_mean_known

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Its parameters, by which scikit-learn clones it."""
        names = ("method", "contamination", "noise_mean_known")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        name = self.method if isinstance(self.method, str) else getattr(self.method, "__qualname__", "method")
        return f"{name}(contamination={self.contamination!r}, noise_mean_known={self.noise_mean_known!r})"

    def fit(self, A: NDArray[Any], y: NDArray[Any]) -> MethodEstimator:
        """Run the method on samples."""
        method = self.method if callable(self.method) else _known(self.method)
        if method is None:
            raise ValueError("the oracle must be told which samples are clean, and cannot be fitted to samples alone.")
        answer = method(A, y, self.contamination, self.noise_mean_known)
        self.signal_, self.converged_ = read_answer(answer, A.shape[1])
        return self


def find_estimator(name: str, contamination: float, *, noise_mean_known: bool = True) -> Any:
    """The estimator of a name in `ATTACKABLE`, told the contamination and whether the noise has mean zero."""
    noise_mean = "zero" if noise_mean_known else "unknown"
    if name == "ours":
        return RobustPhaseRetrieval(contamination, noise_mean=noise_mean)
    if name == "paper":
        return RobustPhaseRetrieval(contamination, noise_mean=noise_mean, step="paper", polish=False)
    return MethodEstimator(name, contamination, noise_mean_known)


def find_methods(methods: str | Iterable[str] | Mapping[str, Method]) -> dict[str, Method | None]:
    """Callables by name, in the order given; the oracle, which needs the world, is None.

    In a mapping a name that is known may stand with None.
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
