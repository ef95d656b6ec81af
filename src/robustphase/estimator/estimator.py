"""The estimator: parameters, attributes and how they come about."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from robustphase.estimator.fitted import SOMETIMES, Settings, attributes_of, special_attributes
from robustphase.estimator.fitting import as_far_as_it_got, fit
from robustphase.estimator.groups import Labelled, check_groups
from robustphase.estimator.history import Clock, Iteration
from robustphase.estimator.inputs import (
    as_seed,
    check_data,
    check_features,
    check_groups_use,
    check_many_use,
    check_operator_use,
    check_parameters,
    check_start,
    check_stream_use,
    open_responses,
    open_rows,
    read_by,
)
from robustphase.estimator.on_workers import fit_on_workers
from robustphase.estimator.progress import LiveLine, Stopped, Watch, usual_passes
from robustphase.estimator.scoring import explained
from robustphase.estimator.standard_errors import errors_of_fit
from robustphase.estimator.streaming import Stream, as_at_first, averaged_step, published_step
from robustphase.initialise.standardise import Standardised, standardised
from robustphase.likelihood import GroupEvidence, NoiseModel
from robustphase.likelihood.laws import CurvedNoise
from robustphase.population import PairedSignal
from robustphase.problem import KEPT
from robustphase.recover.drift import Drift
from robustphase.recover.model import ModelCheck, ModelWarning
from robustphase.rows import project
from robustphase.rows.products import abs2
from robustphase.rows.source import Array
from robustphase.rows.threads import single_threaded_blas
from robustphase.rows.watching import watched_by
from robustphase.validation import hide_nonfinite, in_ordinary_units

#: Records that a stream keeps, so that its memory stays constant.
LONGEST_HISTORY = 1000
#: The last stage of a fit that its callback has ended.
STOPPED = "stopped"


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
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives: ``"auto"`` follows the dtype of ``A``. A complex signal may stand behind real patterns; it and its
        conjugate are the same signal then.
    noise : {"auto", "additive", "poisson"}, default="auto"
        The law of the noise. *additive*: the same for every sample. *poisson*: responses are counts with the mean ``|a·x|²``
        plus an unknown dark count, ``noise_mean_``. *auto*: additive, unless the data show that the noise grows with the signal;
        then its variance is ``read + shot μ + relative μ²`` of the mean μ, or that of counts. ``noise_model_.kind`` tells.
    saturation : float or array of shape (m,) or (m, p), optional
        Responses at or above it are censored: they say "at least that".
    background : array of shape (m,), optional
        Known part of every response that is not the signal's, such as a dark frame; beside the unknown constant.
    drift : {None, "auto"}, default=None
        Whether gain and background may drift slowly over the rows, which stand in the order in which they were read, or jump:
        broken lines with as many pieces as the residuals ask for, or steps at rows that are found, ``drift_``.
    whiten : {"auto", True, False}, default="auto"
        Standardise the second moment of the rows (scale, mean, covariance), robustly: where it is not the identity, always, or
        never. Standard normal rows cost nothing. ``step="paper"`` and ``batches`` take the rows as they are unless told True.
    nonfinite : {"raise", "drop"}, default="raise"
        Samples with NaN or infinities: raise an error, or count them as contaminated. Finite numbers of any size are
        contamination, to be survived.
    random_state : int, RandomState or None, default=None
        Seed of first guesses, subsamples and random mean estimators; None is as good as 0, so that fits repeat.
    verbose : bool, default=False
        Print every record of ``history_``; and on a terminal a live line with passes, time, and what is left as a rule.
    callback : callable, optional
        ``callback(progress)`` is called after every pass over the data, with ``progress.stage``, ``passes``, ``seconds`` and
        ``seconds_left`` (from the least to the most as a rule, or None). If it returns True the fit ends with the best answer so
        far, ``converged_`` False and no certificate; as soon as there is one, if there is none yet. What it raises is raised by
        ``fit``, and the best answer so far, if any, is kept as well.

    Attributes
    ----------
    signal_ : ndarray of shape (n,), or (p, n) for p signals
        The estimate, up to a global sign (phase).
    initial_signal_ : ndarray of shape (n,)
        Where the descent started.
    weights_ : ndarray of shape (m,)
        Weight of every sample in [0, 1]; 0 means treated as bad. After a fit to very many samples on the workers of a cluster
        this and the other arrays with a number for every sample are Dask arrays, computed there when somebody asks.
    contamination_ : float
        The level used, or the level found with ``"auto"``.
    residual_weights_ : ndarray of shape (m,)
        Weights of the last least-squares problem: small also for clean samples with large noise.
    noise_mean_ : float
        0, or the estimated background: the mean residual of the samples not flagged.
    noise_model_ : NoiseModel or CurvedNoise
        The fitted law of the noise: scale, tails (one over the degrees of freedom), logarithm of the skew, share of bad samples;
        and the variance curve, where the noise depends on the signal. Its ``kind`` is "additive", "variance" or "poisson".
    noise_scale_ : float
        Its scale.
    residual_centre_ : float
        Where the residuals ``y − |A x|²`` of clean samples are centred: the peak of the noise model. Fitted also where the
        noise mean is zero; for skewed noise the two differ.
    drift_ : Drift
        With ``drift="auto"``, gain and additional background of every response; the fit is to responses without them.
    covariate_weights_ : ndarray of shape (m,)
        Weight of every row of ``A`` alone, whatever its response; after ``partial_fit``, of the last batch.
    row_weights_ : ndarray of shape (m,)
        For p > 1 signals: probability of every row of ``A`` to be good, from the responses of all signals together. It is part
        of ``weights_``.
    group_weights_ : ndarray of shape (G,), or tuple of them
        With ``groups``: probability of every group to be good, in the order of ``groups_``. It is part of ``weights_`` where
        bad groups were found; elsewhere all are above one half and only rank the groups.
    groups_ : ndarray of shape (G,), or tuple of them
        With ``groups``: the distinct labels.
    group_evidence_ : GroupEvidence or None, or tuple of them
        With ``groups``: weights, log odds, widths of the residuals over the noise and sizes of the groups, and whether bad ones
        were found. None where the groups are too small to say anything.
    unseen_ : ndarray of bool, shape (n,)
        For a linear operator whose columns have very different energies: the unknowns that get hardly any, stay near where they
        started and should not be believed.
    certificate_ : float
        Radius around ``signal_``, relative to its norm, that the robust gradient, or the influence of the fitted law of the
        noise, vouches for at the level used. NaN for a linear operator.
    n_iter_ : int
        Stages and steps made.
    converged_ : bool
        Whether the last stage settled and the model holds. If not, a ``ConvergenceWarning`` (a ``ModelWarning`` where the model
        fails) names the likely cause and what to try.
    model_check_ : ModelCheck
        The test of the model that ends every fit: named checks with figure, threshold, likely cause and what to try; print it
        for a table. If ``model_check_.severe``, the fit has not converged and ``certificate_`` is infinite. A tuple of them,
        one for each signal, for p signals.
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
    screened once, and a row whose responses contradict many signals is bad for all (``row_weights_``); where none does,
    everything else is each signal's own: ``signal_`` and ``initial_signal_`` have shape (p, n), ``weights_``,
    ``residual_weights_`` and ``covariate_weights_`` (m, p), and ``noise_mean_``, ``noise_scale_``, ``residual_centre_``,
    ``contamination_``, ``certificate_``, ``converged_`` and the fields of ``noise_model_`` have p entries.

    **Linear operators.** ``A`` may be a :class:`scipy.sparse.linalg.LinearOperator`, a PyLops operator, or anything with
    ``shape``, ``dtype``, ``matvec`` and ``rmatvec``, real or complex. Nobody can look at its rows, so **covariates are not
    checked**: bad responses, heavy tails and a background are withstood, a wrong operator is not. There is no
    ``certificate_`` (NaN), since its radius rests on the curvature of Gaussian designs and on single rows; and ``whiten``,
    ``step="paper"``, ``batches``, ``partial_fit`` and the starts ``"mean"``, ``"covariance"`` and ``"spectral"`` are refused.
    Where the columns of the operator have very different energies (an attribute ``column_energies``, or probed), the fit is a
    descent on amplitudes with that illumination as its preconditioner, from ``init`` or from the same number everywhere;
    ``unseen_`` names the unknowns in the dark.

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
        field: str = "auto",
        noise: str = "auto",
        saturation: Any = None,
        background: Any = None,
        drift: str | None = None,
        whiten: bool | str = "auto",
        nonfinite: str = "raise",
        random_state: Any = None,
        verbose: bool = False,
        callback: Any = None,
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
        self.field = field
        self.noise = noise
        self.saturation = saturation
        self.background = background
        self.drift = drift
        self.whiten = whiten
        self.nonfinite = nonfinite
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    signal_: Array
    initial_signal_: Array
    weights_: Array
    residual_weights_: Array
    covariate_weights_: Array
    contamination_: float
    noise_mean_: float
    noise_scale_: float
    noise_model_: NoiseModel | CurvedNoise
    certificate_: float
    n_iter_: int
    converged_: bool
    history_: list[Iteration]
    model_check_: ModelCheck | tuple[ModelCheck, ...]
    n_features_in_: int
    batches_seen_: int
    row_weights_: Array
    unseen_: Array
    groups_: Array | tuple[Array, ...]
    group_weights_: Array | tuple[Array, ...]
    group_evidence_: GroupEvidence | tuple[GroupEvidence | None, ...] | None
    residual_centre_: float
    drift_: Drift
    _law_fitted: bool
    _scores: Array | None
    _slopes: Array | None
    _doubted: str
    _seed: int
    _standard: Standardised
    _paired: bool

    def fit(self, A: Any, y: Any, groups: Any = None) -> RobustPhaseRetrieval:
        """Recover the signal behind ``y ≈ |A x|²``.

        Parameters
        ----------
        A : array-like of shape (m, n), RowSource or linear operator
            Covariates; complex rows are the ``aᴴ``. The rows of an operator are trusted.
        y : array-like of shape (m,) or (m, p)
            Responses. With p > 1 columns, p signals behind the same covariates are recovered together.
        groups : array-like of shape (m,) or (m, g), optional
            Labels (integers, strings, anything that can be hashed) of samples that are good or bad together, such as the frame
            a reading belongs to; several columns for several ways to go bad together, such as frame and pixel. Single bad
            samples are found besides.

        Returns
        -------
        self
        """
        level = check_parameters(self)
        self._seed = as_seed(self.random_state)
        line = LiveLine(self.callback) if self.verbose else None
        callback = line or self.callback
        watch = None if callback is None else Watch(callback, usual_passes(self))
        try:
            with watched_by(watch):
                message, category = self._fit(A, y, groups, level, watch, line)
        finally:
            if line is not None:
                line.clear()
        if watch is not None and watch.error is not None:
            raise watch.error
        if message:
            warnings.warn(message, category, stacklevel=2)
        return self

    def _fit(
        self, A: Any, y: Any, groups: Any, level: float | str, watch: Watch | None, line: LiveLine | None
    ) -> tuple[str, type[ConvergenceWarning]]:
        """The fit itself; what to warn of, and as what."""
        source = open_rows(A)
        clock = Clock(source)
        self.history_ = []

        def note(record: Iteration) -> None:
            # Records stand where the live line was, and it goes on below them.
            if line is not None:
                line.clear()
            self._note(record)

        message = fit_on_workers(self, source, y, groups, level, note)
        if message is not None:
            self.n_iter_ = len(self.history_)
            return message, ConvergenceWarning
        samples = check_data(self, A, y, reset=True, source=source, many=True)
        if watch is not None and samples.responses.ndim == 2:
            watch.signal_count = samples.responses.shape[1]
        check_operator_use(self, samples)
        if samples.responses.ndim == 2:
            check_many_use(self)
        labelled = check_groups(groups, samples.source.shape[0])
        if labelled:
            check_groups_use(self)
        clock = clock.moved_to(samples.source) if samples.source is not source else clock
        start = check_start(self.init, samples)
        samples, detector = read_by(self, samples)
        samples, size = in_ordinary_units(samples)
        if size != 1:
            clock = clock.moved_to(samples.source)
            start = start if start is None else size * start
        with single_threaded_blas():
            standard = standardised(samples, self.whiten, level)
        if standard.changes:
            samples = standard.samples
            clock = clock.moved_to(samples.source)
            start = start if start is None else standard.there(start[:, np.newaxis])[:, 0]
        with single_threaded_blas():
            settings = replace(self._settings(level, labelled), standard=standard)
            try:
                fitted = fit(standard.samples, start, settings, clock, note, detector)
            except Stopped:
                assert watch is not None
                assert watch.signals is not None
                with watched_by(None):
                    settings = replace(settings, detector=detector)
                    fitted = as_far_as_it_got(standard.samples, watch.signals, settings, watch.progress)
                passes, seconds = clock.now()
                note(Iteration(STOPPED, passes=passes, seconds=seconds))
        self._paired, one = samples.paired, samples.responses.ndim == 1
        for name in SOMETIMES:
            self.__dict__.pop(name, None)
        self.__dict__.update(
            attributes_of(fitted, standard, size, one=one) | special_attributes(fitted, labelled, one=one)
        )
        self.signal_, self.initial_signal_ = self._marked(self.signal_), self._marked(self.initial_signal_)
        # Without the rest of the fit there is no law of the noise, and no standard errors.
        self._law_fitted = self.polish and self.history_[-1].stage != STOPPED
        self.batches_seen_ = 1
        self.n_iter_ = len(self.history_)
        return fitted.message, ModelWarning if any(check.severe for check in fitted.checks) else ConvergenceWarning

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
        check_stream_use(self)
        if not hasattr(self, "signal_"):
            return self.fit(A, y)
        level = check_parameters(self)
        self._seed = as_seed(self.random_state)
        samples = check_data(self, A, y, reset=False, enough=False)
        check_operator_use(self, samples, method="partial_fit")
        samples, size = in_ordinary_units(samples)
        samples = as_at_first(samples, self._standard)
        signal, initial = (
            self._standard.there(size * np.asarray(s)[:, np.newaxis])[:, 0]
            for s in (self.signal_, self.initial_signal_)
        )
        stream = Stream(signal, initial, self.residual_centre_, self.noise_mean_, self.batches_seen_ + 1)
        used = self.contamination_ if isinstance(level, str) else level
        step_on = published_step if self.step == "paper" else averaged_step
        step = step_on(stream, samples, used, self._settings(level), Clock(samples.source))
        self.batches_seen_ = stream.batches
        self.signal_ = self._marked(self._standard.back(step.signal[:, np.newaxis])[:, 0] / size)
        self.weights_, self.covariate_weights_ = step.weights, step.covariate_weights
        self.residual_centre_, self.noise_mean_ = step.centre, step.noise_mean
        if step.radius is not None:
            self.certificate_ = float(self._standard.radii(step.signal[:, np.newaxis], np.array([step.radius]))[0])
        self._note(step.record)
        self._law_fitted = False
        del self.history_[:-LONGEST_HISTORY]
        self.n_iter_ += 1
        return self

    def _marked(self, signals: Array) -> Array:
        """Signals that know whether their conjugates are the same."""
        return signals.view(PairedSignal) if self._paired else signals

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
        check_features(self, A, source, reset=False)
        source, hidden = hide_nonfinite(source, self.nonfinite)
        # What is expected of a huge row may be more than a double can hold, and infinite then.
        with np.errstate(over="ignore"):
            expected: Array = abs2(project(source, np.asarray(self.signal_).T)) + self.noise_mean_
        expected[hidden] = np.nan
        return expected

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """How much of the responses the signal explains: 1 is everything, 0 as much as a constant; some may be bad.

        R² of the better half of the samples, so that bad responses among those that are held out do not decide. It asks nothing
        of how the model was fitted, so models with different parameters can be compared, as ``GridSearchCV`` and
        ``cross_val_score`` do.

        Parameters
        ----------
        X, y
            Covariates and responses, preferably not those of the fit; one column of responses for each signal.
        sample_weight : array-like of shape (m,), optional
            Weights of the samples.

        Returns
        -------
        float
            The mean over the signals, if there are several.
        """
        expected = self.predict(X)
        responses = np.asarray(open_responses(y), np.float64)
        if responses.size != expected.size:
            raise ValueError(f"y has shape {responses.shape}, the predictions have {expected.shape}.")
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        return explained(responses.reshape(expected.shape), expected, weights)

    def flag_samples(self, threshold: float = KEPT) -> Array:
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

    def flag_groups(self, threshold: float = KEPT) -> Any:
        """Which groups of the last fit were treated as bad.

        Parameters
        ----------
        threshold : float, default=0.5
            Flag groups with a weight below it.

        Returns
        -------
        ndarray of bool, shape (G,), or tuple of them
            In the order of ``groups_``: ``model.groups_[model.flag_groups()]`` are the labels of bad groups. A tuple for several
            columns of labels.
        """
        check_is_fitted(self, "weights_")
        if not hasattr(self, "group_weights_"):
            raise ValueError("the last fit knew of no groups. Pass their labels: fit(A, y, groups=labels).")
        if isinstance(self.group_weights_, tuple):
            return tuple(weights < threshold for weights in self.group_weights_)
        return self.group_weights_ < threshold

    def standard_errors(self, A: Any, y: Any) -> Array:
        """Standard errors of the entries of ``signal_``, by the sandwich formula.

        They measure the noise, also one that grows with the signal, not what the adversary may have done. They are refused where
        the model does not hold (``model_check_``).

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
        if self._doubted:
            raise ValueError(
                f"standard errors need a model that holds, and {self._doubted} failed; print model_check_ for its likely cause."
            )
        samples = check_data(self, A, y, reset=False)
        return errors_of_fit(self, samples.source, samples.responses)

    def _settings(self, level: float | str, labelled: tuple[Labelled, ...] = ()) -> Settings:
        # Those of the estimator's parameters that a fit goes by.
        own = {part.name: getattr(self, part.name) for part in fields(Settings) if hasattr(self, part.name)}
        groupings = tuple(one.grouping for one in labelled)
        return Settings(**own | {"contamination": level, "seed": self._seed, "groupings": groupings})

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
