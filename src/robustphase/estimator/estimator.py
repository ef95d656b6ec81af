"""The estimator: parameters, attributes and how they come about."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from robustphase.estimator.advice import engine_advice, nothing_advice, zero_start_advice
from robustphase.estimator.descent import batch_gradient, check_batches, descend, sample_weights, settings_of
from robustphase.estimator.inputs import check_operator_use, open_responses, open_rows
from robustphase.estimator.many import check_many_use, fit_many, without_signal
from robustphase.estimator.parameters import as_seed, check_parameters, check_start
from robustphase.estimator.records import Clock, Iteration, gradient_record
from robustphase.estimator.standard_errors import influence_slopes, sandwich
from robustphase.estimator.stream import batch_step
from robustphase.initialise.start import spectral_init, whitened
from robustphase.means.confidence import confident_level
from robustphase.population import paper_step
from robustphase.recover import Recovery, recover
from robustphase.recover.certificate import Certificate, certify, uncertified
from robustphase.rows import OperatorRows, RowSource, project
from robustphase.rows.passes import abs2
from robustphase.rows.source import Array
from robustphase.rows.threads import single_threaded_blas
from robustphase.validation import Samples, check_samples, hide_nonfinite, in_ordinary_units

#: Records that a stream keeps, so that its memory stays constant.
LONGEST_HISTORY = 1000


class RobustPhaseRetrieval(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Recover a signal from phaseless measurements of which a fraction is wrong.

    Parameters
    ----------
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the samples that may be bad, in covariates, responses or both. ``"auto"`` finds it; a descent
        (``step="paper"`` or ``batches > 1``) then begins with a run of the default engine.
    noise_mean : {"zero", "unknown"}, default="zero"
        Whether a constant background may be added to every response.
    init : {"auto", "mean", "covariance", "spectral"} or array of shape (n,), default="auto"
        Where to start: the default start; the two configurations of the paper's Procedures 1 and 3; the plain spectral
        start; or a point.
    mean_estimator : str, default="filter"
        Robust mean for gradients, one of ``robustphase.means.METHODS``.
    step : {"newton", "paper"}, default="newton"
        The recovery engine; or the constant steps of Algorithms 2 and 4 along robust gradients, with pairing for an unknown
        noise mean.
    batches : int, default=1
        1: all samples in every iteration. T > 1: T disjoint batches of consecutive rows, one robust step on each, as the
        theory asks. The start sees all samples.
    polish : bool, default=True
        Residual-based refinement after the descent.
    delta : float, default=0.01
        Confidence parameter of the theorems.
    max_iter : int, default=50
        Most steps of a descent; the default engine has its own limits.
    tol : float, default=1e-6
        Stop the descent when a step is shorter than this fraction of the signal.
    whiten : bool, default=False
        The design is Gaussian with unknown covariance: estimate it robustly and whiten the covariates first.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or count them as contaminated. Finite numbers of any size are
        contamination, to be survived.
    random_state : int, RandomState or None, default=None
        Seed of first guesses, subsamples and random mean estimators; None is as good as 0, so that fits repeat.
    verbose : bool, default=False
        Print every record of ``history_``.

    Attributes
    ----------
    signal_ : ndarray of shape (n,), or (p, n) for p signals
        The estimate, up to a global sign (phase).
    initial_signal_ : ndarray of shape (n,)
        Where the descent started.
    weights_ : ndarray of shape (m,)
        Weight of every sample in [0, 1]; 0 means treated as bad.
    contamination_ : float
        The level used, or the level found with ``"auto"``.
    residual_weights_ : ndarray of shape (m,)
        Weights of the last least-squares problem: small also for clean samples with large noise.
    noise_mean_ : float
        0, or the estimated background: the mean residual of the samples not flagged.
    noise_scale_ : float
        Scale of the clean residuals.
    certificate_ : float
        Radius around ``signal_``, relative to its norm, that the robust gradient vouches for at the level used. NaN for a
        linear operator.
    n_iter_ : int
        Stages and steps made.
    converged_ : bool
        Whether the last stage settled. If not, a ``ConvergenceWarning`` names the likely cause and what to try.
    history_ : list of Iteration
        One record per stage or step, with the passes over the data and the time so far.
    n_features_in_ : int
        Number of columns of ``A``.
    feature_names_in_ : ndarray of shape (n,)
        Names of the columns, if ``A`` was a data frame that has them.
    batches_seen_ : int
        Batches that ``fit`` and ``partial_fit`` have learned from.

    Notes
    -----
    **Many signals.** If ``y`` has p > 1 columns, every pass over the covariates serves all p signals. The rows of ``A`` are
    screened once, everything else is each signal's own: ``signal_`` and ``initial_signal_`` have shape (p, n), ``weights_``
    and ``residual_weights_`` (m, p), and ``noise_mean_``, ``noise_scale_``, ``contamination_``, ``certificate_`` and
    ``converged_`` have p entries.

    **Linear operators.** ``A`` may be a :class:`scipy.sparse.linalg.LinearOperator`, a PyLops operator, or anything with
    ``shape``, ``dtype``, ``matvec`` and ``rmatvec``, real or complex. Nobody can look at its rows, so **covariates are not
    checked**: bad responses, heavy tails and a background are withstood, a wrong operator is not. There is no
    ``certificate_`` (NaN), since its radius rests on the curvature of Gaussian designs and on single rows; and ``whiten``,
    ``step="paper"``, ``batches``, ``partial_fit`` and the starts ``"mean"``, ``"covariance"`` and ``"spectral"`` are refused.

    Examples
    --------
    >>> import robustphase as rp
    >>> world = rp.simulate.make_world(n=40, m=2000, contamination=0.1, attack="decoy", seed=0)
    >>> model = rp.RobustPhaseRetrieval(contamination=0.1).fit(world.A, world.y)
    >>> bool(rp.distance(model.signal_, world.truth, relative=True) < 0.1)
    True
    """

    def __init__(
        self,
        contamination: float | str = 0.1,
        *,
        noise_mean: str = "zero",
        init: Any = "auto",
        mean_estimator: str = "filter",
        step: str = "newton",
        batches: int = 1,
        polish: bool = True,
        delta: float = 0.01,
        max_iter: int = 50,
        tol: float = 1e-6,
        whiten: bool = False,
        nonfinite: str = "raise",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.contamination = contamination
        self.noise_mean = noise_mean
        self.init = init
        self.mean_estimator = mean_estimator
        self.step = step
        self.batches = batches
        self.polish = polish
        self.delta = delta
        self.max_iter = max_iter
        self.tol = tol
        self.whiten = whiten
        self.nonfinite = nonfinite
        self.random_state = random_state
        self.verbose = verbose

    signal_: Array
    initial_signal_: Array
    weights_: Array
    residual_weights_: Array
    contamination_: float
    noise_mean_: float
    noise_scale_: float
    certificate_: float
    n_iter_: int
    converged_: bool
    history_: list[Iteration]
    n_features_in_: int
    batches_seen_: int
    _residual_centre: float
    _law_fitted: bool
    _seed: int

    def fit(self, A: Any, y: Any) -> RobustPhaseRetrieval:
        """Recover the signal behind ``y ≈ |A x|²``.

        Parameters
        ----------
        A : array-like of shape (m, n), RowSource or linear operator
            Covariates; complex rows are the ``aᴴ``. The rows of an operator are trusted.
        y : array-like of shape (m,) or (m, p)
            Responses. With p > 1 columns, p signals behind the same covariates are recovered together.

        Returns
        -------
        self
        """
        level = check_parameters(self)
        self._seed = as_seed(self.random_state)
        source = open_rows(A)
        clock = Clock(source)
        samples = self._check_data(A, y, reset=True, source=source, many=True)
        check_operator_use(self, samples)
        clock = clock.moved_to(samples.source) if samples.source is not source else clock
        start = check_start(self.init, samples.source)
        back, (samples, size) = None, in_ordinary_units(samples)
        if size != 1:
            clock = clock.moved_to(samples.source)
            start = start if start is None else size * start
        if self.whiten:
            samples, back = whitened(samples, level)
            clock = clock.moved_to(samples.source)
            start = start if start is None else np.linalg.solve(back, start)
        self.history_ = []
        if samples.responses.ndim == 2:
            self._fit_many(samples, level, back, clock)
            self.signal_, self.initial_signal_ = self.signal_ / size, self.initial_signal_ / size
            return self
        if self.step == "newton" and self.batches == 1:
            with single_threaded_blas():
                message = self._recover(samples, level, start, clock)
        else:
            message = self._descend(samples, level, start, clock)
        if back is not None:
            self.signal_, self.initial_signal_ = back @ self.signal_, back @ self.initial_signal_
        self.signal_, self.initial_signal_ = self.signal_ / size, self.initial_signal_ / size
        self.batches_seen_ = 1
        self.n_iter_ = len(self.history_)
        self.converged_ = not message
        if message:
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def _fit_many(self, samples: Samples, level: float | str, back: Array | None, clock: Clock) -> RobustPhaseRetrieval:
        """One signal for every column of the responses."""
        check_many_use(self)
        fit_many(self, samples, level, clock)
        if back is not None:
            self.signal_, self.initial_signal_ = self.signal_ @ back.T, self.initial_signal_ @ back.T
        self.batches_seen_ = 1
        self.n_iter_ = len(self.history_)
        return self

    def partial_fit(self, A: Any, y: Any) -> RobustPhaseRetrieval:
        """Learn from one fresh batch: the first call recovers a signal from it, each later one is a robust step.

        Memory does not grow with the number of batches. Steps shrink as one over their number, so the estimate averages
        over all batches seen; ``weights_`` and ``certificate_`` are about the last one. With ``step="paper"`` each later call
        is one iteration of Algorithm 2 (4), with its constant step.

        Parameters
        ----------
        A : array-like of shape (m, n) or RowSource
            Covariates of the batch.
        y : array-like of shape (m,)
            Its responses.

        Returns
        -------
        self
        """
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                "y has several columns: partial_fit follows one signal. Keep one estimator for each, or fit all samples at once."
            )
        if not hasattr(self, "signal_"):
            return self.fit(A, y)
        level = check_parameters(self)
        self._seed = as_seed(self.random_state)
        samples = self._check_data(A, y, reset=False, enough=False)
        check_operator_use(self, samples, method="partial_fit")
        samples, size = in_ordinary_units(samples)
        self.signal_, self.initial_signal_ = size * self.signal_, size * self.initial_signal_
        clock = Clock(samples.source)
        used = self.contamination_ if isinstance(level, str) else level
        self.batches_seen_ += 1
        if self.step == "paper":
            self._paper_step(samples, used, clock)
        else:
            self._averaged_step(samples, used, clock)
        self.signal_, self.initial_signal_ = self.signal_ / size, self.initial_signal_ / size
        self._law_fitted = False
        del self.history_[:-LONGEST_HISTORY]
        self.n_iter_ += 1
        return self

    def predict(self, A: Any) -> Array:
        """Expected responses ``|A x|² + noise mean``.

        Parameters
        ----------
        A : array-like of shape (m, n) or RowSource
            Covariates. With ``nonfinite="drop"`` rows that hold NaN or infinities get the prediction NaN.

        Returns
        -------
        ndarray of shape (m,), or (m, p) for p signals
        """
        check_is_fitted(self, "signal_")
        source = open_rows(A)
        validate_data(self, _named(A, source), reset=False, skip_check_array=True)
        source, hidden = hide_nonfinite(source, self.nonfinite)
        # What is expected of a huge row may be more than a double can hold, and infinite then.
        with np.errstate(over="ignore"):
            expected: Array = abs2(project(source, self.signal_.T)) + self.noise_mean_
        expected[hidden] = np.nan
        return expected

    def flag_samples(self, threshold: float = 0.5) -> Array:
        """Which samples of the last fit were treated as bad.

        Parameters
        ----------
        threshold : float, default=0.5
            Flag samples with a weight below it.

        Returns
        -------
        ndarray of bool, shape (m,)
        """
        check_is_fitted(self, "weights_")
        flags: Array = self.weights_ < threshold
        return flags

    def standard_errors(self, A: Any, y: Any) -> Array:
        """Standard errors of the entries of ``signal_``, by the sandwich formula.

        They measure the noise, not what the adversary may have done.

        Parameters
        ----------
        A, y
            The data of the fit; real.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "signal_")
        if self.signal_.ndim == 2:
            raise ValueError(
                "standard errors are for one signal; fit the column of y that you need them for by itself."
            )
        samples = self._check_data(A, y, reset=False)
        if samples.source.dtype.kind == "c":
            raise ValueError(
                "standard errors are for real data: the phase of a complex signal is arbitrary, so its entries have no "
                "error of their own. Compare fits to resampled rows after aligning their phases."
            )
        if not self._law_fitted:
            raise ValueError("standard errors need a fit with polish=True that was not followed by partial_fit.")
        if samples.responses.size != self.weights_.size:
            raise ValueError(
                f"standard errors need the data of the fit, {self.weights_.size} samples, got {samples.responses.size}."
            )
        projections = project(samples.source, self.signal_)
        residuals = samples.responses - projections**2 - self._residual_centre
        slopes = influence_slopes(residuals, self._probabilities, self.residual_weights_, self.noise_scale_)
        return sandwich(samples.source, projections, slopes, self.residual_weights_ * residuals)

    def _check_data(
        self,
        A: Any,
        y: Any,
        *,
        reset: bool,
        enough: bool = True,
        source: RowSource | None = None,
        many: bool = False,
    ) -> Samples:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: one response for every row of A."
            )
        source = open_rows(A) if source is None else source
        samples = check_samples(source, open_responses(y), nonfinite=self.nonfinite, enough=enough, many=many)
        validate_data(self, _named(A, source), reset=reset, skip_check_array=True)
        return samples

    def _find_start(self, samples: Samples, level: float | str) -> Array | None:
        """The starting point, or None where the engine looks for candidates itself."""
        if self.init == "auto" and self.step == "newton":
            return None
        return spectral_init(
            samples.source,
            # Dropped samples read as zero, and a zero would count as a response.
            np.where(samples.dropped, np.nan, samples.responses),
            level,
            self.noise_mean,
            self.init,
            delta=self.delta,
            nonfinite="drop",
            random_state=self._seed,
        ).signal

    def _recover(self, samples: Samples, level: float | str, start: Array | None, clock: Clock) -> str:
        """The default engine; what to warn of, if anything."""
        start = self._find_start(samples, level) if start is None else start
        if start is not None and not np.any(start):
            return self._give_up(samples, level, start, clock)
        _, before = clock.now()
        found = self._run_engine(samples, level, start)
        for stage in found.history:
            self._note(
                Iteration(
                    stage.stage,
                    moved=stage.moved,
                    score=stage.score,
                    candidates=stage.candidates,
                    passes=clock.passes_at(stage.passes),
                    seconds=before + stage.seconds,
                )
            )
        self.initial_signal_ = found.initial_signal
        self.contamination_ = found.contamination if isinstance(level, str) else level
        self._adopt(samples, found, clock)
        if without_signal(samples.responses[:, np.newaxis], self.signal_[:, np.newaxis]).any():
            self.signal_, self.certificate_ = np.zeros_like(self.signal_), np.inf
            return nothing_advice()
        if found.converged:
            return ""
        return engine_advice(self.contamination, found, *samples.source.shape, self.whiten)

    def _descend(self, samples: Samples, level: float | str, start: Array | None, clock: Clock) -> str:
        """Robust gradient steps, and the polish; what to warn of, if anything."""
        check_batches(self.batches, *samples.source.shape)
        if isinstance(level, str):
            # The robust means of a descent need a number; the engine finds one.
            level = self._run_engine(samples, level, None).contamination
        if start is None:
            start = self._find_start(samples, level)
        if start is None:
            start = self._run_engine(samples, level, None, polish=False).signal
        if not np.any(start):
            return self._give_up(samples, level, start, clock)
        self.initial_signal_, self.contamination_ = start, level
        outcome = descend(samples, start, settings_of(self, level, self._seed), clock, self._note)
        if self.polish:
            found = self._run_engine(samples, level, outcome.signal)
            passes, seconds = clock.now()
            self._note(Iteration("polish", moved=found.history[-1].moved, passes=passes, seconds=seconds))
        else:
            residuals = samples.responses - abs2(project(samples.source, outcome.signal))
            found = Recovery(
                signal=outcome.signal,
                initial_signal=start,
                background=float(np.median(residuals)),
                weights=np.where(samples.dropped, 0.0, outcome.weights),
                contamination=level,
                scale=float(np.median(np.abs(residuals - np.median(residuals)))),
                converged=True,
                history=(),
                residual_weights=outcome.weights,
            )
        self._adopt(samples, found, clock)
        return outcome.message

    def _averaged_step(self, samples: Samples, level: float, clock: Clock) -> None:
        """A step on a fresh batch, averaged with all earlier ones."""
        gain = 1.0 / self.batches_seen_
        asked = batch_step(samples, self.signal_, self._residual_centre, level, self._seed)
        signal = self.signal_ + gain * (asked.signal - self.signal_)
        self._residual_centre += gain * (asked.centre - self._residual_centre)
        self.weights_ = np.where(samples.dropped, 0.0, asked.weights)
        if self.noise_mean == "unknown":
            self.noise_mean_ += gain * (self._background(samples, signal, self.weights_) - self.noise_mean_)
        before = self.signal_
        certificate = self._certify(samples, signal, level)
        self.signal_, self.certificate_ = certificate.signal, certificate.radius
        self._note(gradient_record("descent", certificate.gradient, self.signal_ - before, self.signal_, *clock.now()))

    def _paper_step(self, samples: Samples, level: float, clock: Clock) -> None:
        """One iteration of Algorithm 2 or 4 on a fresh batch."""
        settings = settings_of(self, level, self._seed)
        gradient = batch_gradient(samples, self.signal_, settings)
        move = paper_step(self.initial_signal_, noise_mean="unknown" if settings.paired else "zero") * gradient.location
        self.signal_ = self.signal_ - move
        weights = np.ones(samples.responses.size)
        used = sample_weights(gradient, settings)
        weights[: used.size] = used
        self.weights_ = np.where(samples.dropped, 0.0, weights)
        if self.noise_mean == "unknown":
            background = self._background(samples, self.signal_, self.weights_)
            self.noise_mean_ += (background - self.noise_mean_) / self.batches_seen_
        self._note(gradient_record("descent", gradient, move, self.signal_, *clock.now()))

    def _run_engine(
        self, samples: Samples, level: float | str, start: Array | None, *, polish: bool | None = None
    ) -> Recovery:
        return recover(
            samples,
            level,
            unknown_mean=self.noise_mean == "unknown",
            start=start,
            with_polish=self.polish if polish is None else polish,
            seed=self._seed,
        )

    def _adopt(self, samples: Samples, found: Recovery, clock: Clock) -> None:
        """Take over an answer, with its certificate."""
        self.weights_, self.residual_weights_, self.noise_scale_ = found.weights, found.residual_weights, found.scale
        self._probabilities = found.weights if found.probabilities is None else found.probabilities
        self.noise_mean_ = self._background(samples, found.signal, found.weights)
        certificate = self._certify(samples, found.signal, self.contamination_)
        # Only the polish can leave the ball; a descent ends where robust gradients lead it.
        self.signal_ = certificate.signal if self.polish else found.signal
        self.certificate_ = certificate.radius
        # The polish fits the location of the residuals also where their mean is known to be zero.
        self._residual_centre, self._law_fitted = found.background, self.polish
        move = found.signal - self.signal_
        self._note(gradient_record("certificate", certificate.gradient, move, self.signal_, *clock.now()))

    def _certify(self, samples: Samples, signal: Array, level: float) -> Certificate:
        if isinstance(samples.source, OperatorRows):
            return uncertified(samples.source, samples.responses, signal, self.noise_mean_, self.weights_)
        return certify(
            samples.source,
            samples.responses,
            signal,
            self.noise_mean_,
            float(confident_level(level, self.delta, samples.source.shape[0])),
            unknown_mean=self.noise_mean == "unknown",
            weights=self.weights_,
            mean_estimator=self.mean_estimator,
            random_state=self._seed,
        )

    def _background(self, samples: Samples, signal: Array, weights: Array) -> float:
        """Mean residual of the samples that are not flagged, if it is not known to be zero.

        Where the fitted noise law has its peak would not do: for skewed noise that is not the mean.
        """
        if self.noise_mean == "zero":
            return 0.0
        residuals = samples.responses - abs2(project(samples.source, signal))
        kept = weights > 0.5
        return float(np.mean(residuals[kept])) if kept.any() else float(np.median(residuals))

    def _give_up(self, samples: Samples, level: float | str, start: Array, clock: Clock) -> str:
        """Nothing can be done from a start of zero."""
        self.signal_ = self.initial_signal_ = start
        self.contamination_ = 0.0 if isinstance(level, str) else level
        self.noise_mean_ = float(np.median(samples.responses)) if self.noise_mean == "unknown" else 0.0
        self.weights_ = self.residual_weights_ = np.where(samples.dropped, 0.0, 1.0)
        self.noise_scale_ = float(np.median(np.abs(samples.responses - self.noise_mean_)))
        self.certificate_, self._residual_centre, self._law_fitted = np.inf, 0.0, False
        passes, seconds = clock.now()
        self._note(Iteration("start", passes=passes, seconds=seconds))
        return zero_start_advice(self.init)

    def _note(self, record: Iteration) -> None:
        self.history_.append(record)
        if self.verbose:
            print(record, flush=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = self.step == "newton" and self.batches == 1 and self.polish
        # A linear response, which scikit-learn's check of the score has in mind, is none of ours.
        tags.regressor_tags.poor_score = True
        tags.input_tags.allow_nan = self.nonfinite == "drop"
        return tags


def _named(A: Any, source: Any) -> Any:
    """What scikit-learn reads names and the number of features from: the frame, or the opened rows."""
    return A if hasattr(A, "columns") else source
