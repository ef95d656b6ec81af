"""Complex signals behind real rows: curvature, moments, and the distance that knows their conjugates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from robustphase.population import PairedSignal, distance, newton_step
from robustphase.population.real_rows import JointMoments, PairedCurvature, least_curvature, normal_moments


def drawn(rng, n=6, share=0.5):
    return (rng.standard_normal(n) + share * 1j * rng.standard_normal(n))[:, np.newaxis]


def sample_moments(A, x):
    s = A @ x
    squares, energy = s * s, np.abs(s) ** 2
    parts = (np.ones_like(energy), energy, energy**2, squares, energy * squares, squares**2)
    return JointMoments(*(part.mean(axis=0) for part in parts))


def test_the_moments_are_those_of_many_normal_rows(rng):
    x = drawn(rng)
    for found, expected in zip(sample_moments(rng.standard_normal((400_000, 6)), x), normal_moments(x), strict=True):
        assert_allclose(found, expected, rtol=0.1)


@pytest.mark.parametrize("profiled", [False, True])
def test_the_inverse_undoes_the_curvature_of_many_normal_rows(rng, profiled):
    x, h = drawn(rng), drawn(rng)
    A = rng.standard_normal((400_000, 6))
    # The phase of the signal is free, so no curvature knows the part of a change that turns it.
    h -= 1j * x * np.vdot(1j * x, h).real / np.vdot(x, x).real
    s = A @ x
    change = 2 * (s.conj() * (A @ h)).real
    change -= change.mean() if profiled else 0.0
    image = A.T @ (s * change) / len(A)
    none = np.zeros(1)
    inverse = PairedCurvature(x, sample_moments(A, x), profiled=profiled, least_across=none, least_along=none + 1e-9)
    assert np.linalg.norm(inverse.solve(image) - h) < 0.03 * np.linalg.norm(h)


def test_a_newton_step_behind_real_rows_divides_by_their_curvature(rng):
    x = drawn(rng)[:, 0]
    parts = np.linalg.qr(np.stack((x.real, x.imag), axis=1))[0]
    across = rng.standard_normal(6)
    across -= parts @ (parts.T @ across)
    power, pseudo = np.vdot(x, x).real, x @ x
    h = across * np.exp(0.3j)
    image = power * h + pseudo * h.conj()
    assert_allclose(newton_step(x, image, real_rows=True), h, rtol=1e-9)


def test_a_nearly_real_signal_has_next_to_no_curvature_along_its_imaginary_part():
    x = np.array([[1.0 + 0j], [0.1j], [0.0]])
    assert_allclose(least_curvature(x), 2 * 0.01 / 1.01, rtol=1e-9)
    assert least_curvature(x.real.astype(complex))[0] == 0


def test_a_signal_that_stands_behind_real_rows_is_its_conjugate(rng):
    x = drawn(rng)[:, 0]
    assert distance(x, x.conj()) > 0.1
    assert distance(x, x.conj(), conjugate=True) < 1e-12
    marked = x.view(PairedSignal)
    assert distance(marked, 1j * x.conj()) < 1e-12
    assert distance(1j * x.conj(), marked) < 1e-12
    assert distance(marked, x.conj(), conjugate=False) > 0.1
    with pytest.raises(ValueError, match="conjugate"):
        distance(x, x, conjugate="yes")
