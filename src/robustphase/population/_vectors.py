"""What the closed forms accept: one-dimensional arrays of equal length, real or complex."""

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float64]
Matrix: TypeAlias = npt.NDArray[np.float64]
ComplexVector: TypeAlias = npt.NDArray[np.complex128]
ComplexMatrix: TypeAlias = npt.NDArray[np.complex128]
NoiseMean: TypeAlias = Literal["zero", "unknown"]


def real_vector(value: npt.ArrayLike, name: str) -> Vector:
    """Return ``value`` as a float64 vector, or say what is wrong with it."""
    array: npt.NDArray[Any] = np.asarray(value)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector, got an array of shape {array.shape}")
    if np.iscomplexobj(array):
        raise TypeError(
            f"{name} is complex, but this closed form is for real signals; see robustphase.population.complex_model"
        )
    return array.astype(np.float64)


def real_vectors(**values: npt.ArrayLike) -> tuple[Vector, ...]:
    """Return several real vectors of one length, in the order given."""
    vectors = tuple(real_vector(value, name) for name, value in values.items())
    if len({v.size for v in vectors}) > 1:
        lengths = ", ".join(f"{name} has {v.size}" for name, v in zip(values, vectors, strict=True))
        raise ValueError(f"the vectors must have the same length: {lengths}")
    return vectors


def nearer_sign(x: Vector, truth: Vector) -> Vector:
    """Return ``truth`` or ``-truth``, whichever is nearer to ``x``."""
    return -truth if x @ truth < 0.0 else truth


def complex_vectors(**values: npt.ArrayLike) -> tuple[ComplexVector, ...]:
    """Return several complex vectors of one length, in the order given (real ones are promoted)."""
    vectors = tuple(np.asarray(value).astype(np.complex128) for value in values.values())
    for name, v in zip(values, vectors, strict=True):
        if v.ndim != 1:
            raise ValueError(f"{name} must be a vector, got an array of shape {v.shape}")
    if len({v.size for v in vectors}) > 1:
        lengths = ", ".join(f"{name} has {v.size}" for name, v in zip(values, vectors, strict=True))
        raise ValueError(f"the vectors must have the same length: {lengths}")
    return vectors


def check_noise_mean(noise_mean: str) -> None:
    """Refuse anything but the two models of the paper."""
    if noise_mean not in ("zero", "unknown"):
        raise ValueError(f'noise_mean must be "zero" (Section 2.2) or "unknown" (Section 2.3), got {noise_mean!r}')


def check_noise_variance(noise_variance: float) -> None:
    """Refuse a negative or undefined variance."""
    if not noise_variance >= 0.0:
        raise ValueError(f"noise_variance must be a number >= 0, got {noise_variance}")


def check_relative_radius(relative_radius: float) -> None:
    """Refuse a ball that reaches the origin, where the two signs of the signal meet."""
    if not 0.0 <= relative_radius < 1.0:
        raise ValueError(
            f"relative_radius must lie in [0, 1), got {relative_radius}. "
            "It is the radius of the ball around the truth divided by the norm of the truth"
        )


def check_dimension(dimension: int) -> None:
    """Refuse a dimension below one."""
    if dimension < 1:
        raise ValueError(f"dimension must be at least 1, got {dimension}")
