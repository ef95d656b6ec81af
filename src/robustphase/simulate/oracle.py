"""Fresh contaminated batches, the access model of the paper: ask for m samples, and the adversary sees them first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robustphase.simulate.adversaries import Adversary, find_adversary
from robustphase.simulate.arguments import Seed, check_contamination, check_seed, check_size
from robustphase.simulate.corruption import Contaminated, corrupt
from robustphase.simulate.designs import GAUSSIAN, Design, find_design
from robustphase.simulate.noises import Noise, find_noise
from robustphase.simulate.world import absolute_moments, draw_clean

#: A batch is a contaminated sample like any other: ``.A``, ``.y``, ``.touched``, iterating as ``(A, y)``.
Batch = Contaminated


class SampleOracle:
    """Draws independent contaminated batches of one signal.

    Parameters
    ----------
    truth : array of shape (n,)
        The signal; its dtype (real or complex, single or double) is that of the covariates.
    contamination : float
        Fraction of every batch that may be rewritten, in [0, 0.5).
    attack : str or Adversary
        A name in `ADVERSARIES`, an `Adversary`, or ``"none"``.
    noise : str or Noise
        A name in `NOISES` or a `Noise`.
    noise_std, noise_mean : float
        Moments of the noise **relative to** ‖x*‖², as in `make_world`; the attributes of the same names are in the
        units of the responses.
    design : str or Design, default="gaussian"
        Law of the covariates: a name in `DESIGNS`, or a `Design`. Noise is relative to the mean response of other designs too,
        that of a thousand rows.
    seed : int, Generator or None
        Source of all randomness: an oracle with the same seed draws the same sequence of batches.

    Examples
    --------
    >>> from robustphase.simulate import SampleOracle, random_signal
    >>> oracle = SampleOracle(random_signal(20, seed=0), contamination=0.1, attack="leverage", seed=1)
    >>> A, y = oracle.draw(500)
    >>> A.shape, y.shape
    ((500, 20), (500,))
    >>> [int(batch.touched.sum()) for batch in oracle.batches(3, 200)]
    [20, 20, 20]
    """

    def __init__(
        self,
        truth: ArrayLike,
        *,
        contamination: float = 0.1,
        attack: str | Adversary = "decoy",
        noise: str | Noise = "student",
        noise_std: float = 0.5,
        noise_mean: float = 0.0,
        design: str | Design = "gaussian",
        seed: Seed = None,
    ) -> None:
        self.truth: NDArray[Any] = _checked_signal(truth)
        self.contamination = check_contamination(contamination)
        self.noise = find_noise(noise)
        self.design = find_design(design)
        norm = float(np.linalg.norm(self.truth))
        self._field = "complex" if np.iscomplexobj(self.truth) else "real"
        if self.design is not GAUSSIAN:
            rows = self.design.sample(1000, len(self.truth), field=self._field, seed=0)
            norm = float(np.sqrt(np.mean(np.abs(rows @ self.truth) ** 2)))
        self.noise_std, self.noise_mean = absolute_moments(self.noise, noise_std, noise_mean, norm)
        self._adversary = find_adversary(attack)
        self.attack = self._adversary.name if self._adversary else "none"
        self._rng = check_seed(seed)

    def draw(self, m: int) -> Batch:
        """Draw ``m`` fresh samples and let the adversary rewrite its share of them."""
        m, moments = check_size("m", m), (self.noise_std, self.noise_mean)
        A, y = draw_clean(self.truth, m, self.noise, *moments, self._rng, design=self.design)
        return corrupt(
            A,
            y,
            self.truth,
            attack=self._adversary or "none",
            contamination=self.contamination,
            noise_std=self.noise_std,
            noise_mean=self.noise_mean,
            design=self.design,
            seed=self._rng,
        )

    def batches(self, count: int, m: int) -> Iterator[Batch]:
        """Yield ``count`` independent batches of ``m`` samples, each drawn when it is asked for."""
        # Checked here and not in a generator's body, so that a wrong argument fails at the call.
        count, m = check_size("count", count), check_size("m", m)
        return (self.draw(m) for _ in range(count))


def _checked_signal(truth: ArrayLike) -> NDArray[Any]:
    signal = np.array(truth)
    if signal.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        signal = signal.astype(np.float64)
    if signal.ndim != 1 or not signal.size or not np.isfinite(signal).all() or not signal.any():
        raise ValueError(
            f"truth must be a finite non-zero vector, got an array of shape {signal.shape}. "
            "Pass for example random_signal(100)."
        )
    return signal
