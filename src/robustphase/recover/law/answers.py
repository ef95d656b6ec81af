"""What is known of the readings, the answer of the additive engine, and the answer under a law."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustphase.descend.law_fit import LawFit
from robustphase.likelihood.laws import CurvedNoise, Readings
from robustphase.likelihood.noise_model import NoiseModel
from robustphase.rows.products import abs2
from robustphase.rows.source import Array

NOISES = ("auto", "additive", "poisson")


class Detector(NamedTuple):
    """What is known of how the responses were read."""

    noise: str = "additive"  # {"auto", "additive", "poisson"}: the law
    censored: Array | None = None  # bool (m, p): responses that say "at least that"
    offsets: Array | None = None  # (m, 1): known background, which was taken away from the responses
    drifting: bool = False  # Whether gain and background may drift over the rows

    def only(self, columns: Array) -> Detector:
        """What is known of some of the signals."""
        censored = self.censored
        return self if censored is None else self._replace(censored=censored[:, columns])


class Answer(NamedTuple):
    """The additive answer: signals (n, p), backgrounds (p,), noise, weights of the samples and ``|A x|²`` (m, p)."""

    signals: Array
    backgrounds: Array
    noise: NoiseModel
    weights: Array
    predictions: Array

    def only(self, columns: Array) -> Answer:
        """Some of the answers."""
        return Answer(
            self.signals[:, columns],
            self.backgrounds[columns],
            self.noise.only(columns),
            self.weights[:, columns],
            self.predictions[:, columns],
        )

    def over(self, units: Array) -> Answer:
        """The same in other units of the responses."""
        return Answer(
            self.signals / np.sqrt(units),
            self.backgrounds / units,
            self.noise._replace(scales=self.noise.scales / units),
            self.weights,
            self.predictions / units,
        )


class Lawful(NamedTuple):
    """Answers under a law, one column for each signal."""

    signals: Array  # (n, p): the answers
    backgrounds: Array  # (p,): constant parts of the means
    noise: CurvedNoise  # The fitted laws
    clean: Array  # (m, p): probabilities to be clean, times the weights of the covariates
    #: (m, p): weights of the last least-squares problem, and score and minus its derivative by the mean.
    weights: Array
    scores: Array
    slopes: Array
    predictions: Array  # (m, p): ``|A x|²``
    converged: Array  # bool (p,): whether the fit settled

    @classmethod
    def of(cls, readings: Readings, fit: LawFit) -> Lawful:
        """A fit under a law as an answer."""
        judged = fit.judged
        return cls(
            fit.signals,
            fit.backgrounds,
            fit.law.as_model(abs2(fit.projections), fit.backgrounds, readings),
            judged.clean * readings.weights,
            judged.weights,
            judged.weights * judged.residuals,
            fit.law.slopes(judged, readings, fit.means),
            abs2(fit.projections),
            fit.converged,
        )

    def times(self, units: Array) -> Lawful:
        """The same where the responses were divided by these units."""
        noise = self.noise
        return self._replace(
            signals=self.signals * np.sqrt(units),
            backgrounds=self.backgrounds * units,
            noise=noise._replace(scales=noise.scales * units, read=noise.read * units**2, shot=noise.shot * units),
            weights=self.weights / units**2,
            scores=self.scores / units,
            slopes=self.slopes / units**2,
            predictions=self.predictions * units,
        )


def joined(parts: list[Lawful]) -> Lawful:
    """Answers to some columns each, as one."""
    if len(parts) == 1:
        return parts[0]
    noise = CurvedNoise(*(np.concatenate(fields) for fields in zip(*(part.noise for part in parts), strict=True)))
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=-1)
        for name in Lawful._fields
        if name != "noise"
    }
    return Lawful(noise=noise, **joined)
