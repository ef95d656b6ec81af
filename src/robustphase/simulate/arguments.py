"""Checks of arguments: every refusal names the argument, the value it had, and what to pass instead."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np

Seed: TypeAlias = int | np.random.Generator | None

FIELDS = ("real", "complex")


def check_seed(seed: Seed) -> np.random.Generator:
    """Turn ``seed`` into a generator; a generator is used as it is, so that successive calls continue one stream."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"seed must be a non-negative integer, a numpy Generator or None, got {seed!r}. Pass for example seed=0."
        ) from error


def check_size(argument: str, value: int) -> int:
    """Return ``value`` as a positive ``int``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{argument} must be a positive integer, got {value!r}. Pass {argument}=1 or more.")
    return int(value)


def check_number(argument: str, value: float, *, above: float = -math.inf, strict: bool = False) -> float:
    """Return ``value`` as a finite ``float`` that is at least ``above`` (larger than ``above`` if ``strict``)."""
    finite = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if finite and (value > above or (value == above and not strict)):
        return float(value)
    asked = "" if above == -math.inf else f" {'larger than' if strict else 'at least'} {above:g}"
    remedy = f"{argument}={above + 1:g}" if asked else f"{argument}=0.0"
    raise ValueError(f"{argument} must be a finite number{asked}, got {value!r}. Pass for example {remedy}.")


def check_contamination(value: float) -> float:
    """Return the contamination ε as a ``float`` in [0, 0.5)."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0 <= value < 0.5:
        return float(value)
    remedy = "Pass a fraction such as 0.1 (10 percent)."
    if isinstance(value, Real) and 1 <= value < 50:
        remedy = f"Did you mean {value / 100:g} ({value:g} percent)?"
    elif isinstance(value, Real) and 0.5 <= value < 1:
        remedy = "From one half on the bad samples can outvote the good ones; pass a smaller fraction such as 0.4."
    raise ValueError(f"contamination must be a number in [0, 0.5), got {value!r}. {remedy}")


def check_choice(argument: str, value: object, known: Iterable[str]) -> str:
    """Return ``value`` if it is one of the ``known`` names; otherwise list them and point at the closest."""
    names = sorted(known)
    if isinstance(value, str) and value in names:
        return value
    close = get_close_matches(str(value), names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{argument} must be one of {', '.join(map(repr, names))}; got {value!r}.{hint}")


def check_dtype(dtype: object, field: str) -> np.dtype[np.generic]:
    """Return the dtype of the covariates: double precision of the field unless ``dtype`` asks for single."""
    double, single = ("complex128", "complex64") if field == "complex" else ("float64", "float32")
    if dtype is None:
        return np.dtype(double)
    try:
        found = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        found = None
    if found is None or found.name not in (double, single):
        raise ValueError(f"dtype must be {double!r} or {single!r} when field={field!r}, got {dtype!r}.")
    return found  # type: ignore[no-any-return]
