"""How to fit, and what a fit found: what the engine, a descent, certificates and checks of the model have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from robustphase.descend.robust_gradient import DescentRule
from robustphase.initialise.standardise import Standardised
from robustphase.population import paper_step
from robustphase.problem import Grouping
from robustphase.recover import Recovery
from robustphase.recover.drift import Drift
from robustphase.recover.law.answers import Detector
from robustphase.recover.model import ModelCheck
from robustphase.rows.source import Array
from robustphase.validation import Samples


@dataclass(frozen=True)
class Settings:
    """How to fit: the estimator's parameters, with a definite seed, and how the samples were read and standardised."""

    contamination: float | str
    noise_mean: str
    init: Any
    mean_estimator: str
    step: str
    batches: int
    polish: bool
    delta: float
    max_iter: int
    tol: float
    whiten: bool | str
    field: str
    seed: int
    detector: Detector | None = None
    groupings: tuple[Grouping, ...] = ()
    standard: Standardised | None = None

    @property
    def unknown_mean(self) -> bool:
        """Whether the noise may have a mean."""
        return self.noise_mean == "unknown"

    @property
    def descends(self) -> bool:
        """Whether robust gradients lead all the way, rather than the engine."""
        return self.step == "paper" or self.batches > 1

    def rule(self, contamination: float, start: Array) -> DescentRule:
        """The steps of a descent from ``start``: those of Algorithm 2 or 4, or Newton's."""
        as_published = self.step == "paper"
        noise_mean: Any = self.noise_mean
        return DescentRule(
            contamination,
            self.delta,
            mean_estimator=self.mean_estimator,
            paired=as_published and self.unknown_mean,
            step_size=paper_step(start, noise_mean=noise_mean) if as_published else None,
            unknown_mean=self.unknown_mean,
            random_state=self.seed,
        )


@dataclass(frozen=True)
class Fitted:
    """What a fit found, one column for each signal.

    Attributes
    ----------
    recovery : Recovery
        The answers as the engine or the descent left them.
    signals : ndarray of shape (n, p)
        The answers as the robust gradient vouches for them.
    radii, levels, noise_means : ndarray of shape (p,)
        Certificates, contamination used or found, and noise means.
    converged : ndarray of bool, shape (p,)
        Whether each settled.
    message : str
        What to warn of, if anything.
    checks : tuple of ModelCheck
        The test of each one's model.
    drift : Drift, optional
        What drifts over the rows, where that was asked for.
    """

    recovery: Recovery
    signals: Array
    radii: Array
    levels: Array
    noise_means: Array
    converged: Array
    message: str = ""
    checks: tuple[ModelCheck, ...] = ()
    drift: Drift | None = None


def unread(samples: Samples, settings: Settings) -> Array:
    """Samples whose responses cannot be compared with predictions: dropped, or censored."""
    censored = None if settings.detector is None else settings.detector.censored
    unread: Array = samples.dropped if censored is None else samples.dropped | censored.reshape(samples.dropped.shape)
    return unread


def as_columns(values: Array) -> Array:
    """Responses, or what there is one of for each, with an axis for the signals."""
    return values.reshape(len(values), -1)
