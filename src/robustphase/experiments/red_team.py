"""An attacker that learns: a search for the attack that hurts a given method most.

The attacks are those of `simulate.ParametricAttack`, points of a cube; the objective is the mean relative error of the method in
a few worlds, the same for every attack, so that differences are those of the attacks. A quarter of the budget opens the
search: attacks known to have hurt somebody, and a spread of random ones. From the best of these, several evolution strategies
(`evolution`) climb, one after the other. What they find is then run in fresh worlds: the largest of many noisy means flatters.

All is a function of the seed and of the errors that were measured, and these are stored as they come (`attack_report`). So an
interrupted search, called again, goes through the same steps, reads what it knows, and goes on.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc
from sklearn.base import clone

from robustphase.experiments.attack_report import RedTeamResult, RedTeamSettings, Trial, TrialStore, found_attacks
from robustphase.experiments.evolution import EvolutionStrategy, Points, rounded
from robustphase.experiments.methods import read_answer
from robustphase.experiments.parallel import in_processes, worker_count
from robustphase.options import with_defaults
from robustphase.population import distance
from robustphase.simulate import NOISES, make_world
from robustphase.simulate.adversaries.parametric import FAMILY, ParametricAttack
from robustphase.simulate.arguments import check_choice, check_size

Progress: TypeAlias = Callable[[int, int, str], None]
Vector: TypeAlias = tuple[float, ...]

#: Error that counts where there is no answer: that of the answer zero.
NO_ANSWER = 1.0
#: Share of the attacks that open the search, and the width at which strategies begin to climb from the best of them.
OPENING, WIDTH = 0.25, 0.06
#: Attacks closer than this (root mean square over the coordinates) count as one where several are wanted.
APART = 0.1
#: Attacks that have hurt one method or another: a second signal put in the place of the strongest evidence for the truth, near
#: and far; written where the noise leans its way; where the two differ most; in rows made for it; and half way.
KNOWN = (
    ParametricAttack(angle=0.5, norm=0.9, by_likelihood=-1.0, noise_factor=0.0),
    ParametricAttack(angle=0.9, by_likelihood=-1.0, own_noise=0.0, choices=4.0),
    ParametricAttack(angle=0.25, by_likelihood=-1.0, noise_factor=0.5, leaning=0.5),
    ParametricAttack(angle=1.3, norm=0.8, by_likelihood=-1.0),
    ParametricAttack(angle=0.6, by_leaning=1.0, by_difference=0.3),
    ParametricAttack(angle=1.0, by_likelihood=1.0, by_difference=0.5),
    ParametricAttack(angle=1.4, by_difference=1.0, noise_factor=0.3),
    ParametricAttack(angle=1.2, randomness=1.0, redrawn=1.0, choices=8.0),
    ParametricAttack(angle=1.5, norm=1.3, by_truth=1.0),
    ParametricAttack(angle=0.4, by_difference=1.0, move=0.5, leaning=1.0),
    ParametricAttack(angle=1.3, norm=2.0, randomness=1.0, redrawn=1.0, tilt=1.0, aim=1.5, noise_factor=0.0),
)


class RedTeamInterrupted(KeyboardInterrupt):
    """An interruption that keeps what was found.

    Attributes
    ----------
    partial : RedTeamResult or None
        The worst attacks so far; None if not one was finished.
    """

    def __init__(self, message: str, partial: RedTeamResult | None) -> None:
        super().__init__(message)
        self.partial = partial


class _Fit(NamedTuple):
    """One fit to be made: an attack, or none, in a world."""

    vector: Vector | None
    n: int
    m: int
    seed: int


class RedTeamOptions(TypedDict, total=False):
    """The worlds of a search, and how it is made; described by :func:`red_team`."""

    contamination: float
    n: int
    m: int
    noise: str
    noise_std: float
    noise_mean: float
    field: str
    seeds_per_attack: int
    restarts: int
    confirm: int
    confirm_n: int | None
    confirm_m: int | None
    top: int


DEFAULTS = RedTeamOptions(
    contamination=0.1,
    n=50,
    m=2500,
    noise="gaussian",
    noise_std=0.5,
    noise_mean=0.0,
    field="real",
    seeds_per_attack=3,
    restarts=3,
    confirm=8,
    confirm_n=None,
    confirm_m=None,
    top=5,
)


def red_team(
    estimator: Any,
    *,
    budget: int = 300,
    seed: int = 0,
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Unpack[RedTeamOptions],
) -> RedTeamResult:
    """Search for the attack under which a method errs most.

    Parameters
    ----------
    estimator : object
        Anything with ``fit(A, y)`` that then has ``signal_``; it is cloned for every fit. What it should be told about the
        worlds, the contamination for instance, tell it before.
    budget : int, default=300
        Most fits that the search may make, those without an attack included. The confirmation makes ``top * confirm`` more.
    seed : int, default=0
        Source of all randomness of the search.
    workers : int, optional
        Processes, one thread each. Default: one per processor. 1 stays in this process.
    store : path, optional
        A ``.json`` file that keeps every attack that was tried. Called again with the same settings, the search goes on where it
        was, to the same result.
    progress : callable, optional
        Called as ``progress(done, total, text)`` after every attack.

    Other Parameters
    ----------------
    contamination : float, default=0.1
        Share of the samples that the attacks may rewrite.
    n, m : int, default=50 and 2500
        Dimension and number of samples of the worlds of the search.
    noise, noise_std, noise_mean, field
        The worlds, as for ``robustphase.simulate.make_world``; ``noise`` is a name in ``simulate.NOISES``, by default
        ``"gaussian"``.
    seeds_per_attack : int, default=3
        Worlds over which the error of an attack is averaged.
    restarts : int, default=3
        How many evolution strategies share the budget, each from another start.
    confirm : int, default=8
        Fresh worlds in which the worst attacks are run again; 0 for none.
    confirm_n, confirm_m : int, optional
        Their sizes, if other than those of the search.
    top : int, default=5
        How many attacks are returned.

    Returns
    -------
    RedTeamResult
        ``.report()`` tells all; ``.adversary`` is the worst attack, ready for ``simulate.make_world(attack=...)``.

    Raises
    ------
    RedTeamInterrupted
        On Ctrl-C; holds the worst attacks so far as ``partial``.

    Examples
    --------
    >>> import robustphase as rp
    >>> found = rp.experiments.red_team(
    ...     rp.RobustPhaseRetrieval(0.1), n=5, m=200, budget=8, seeds_per_attack=1, confirm=1, top=1, workers=1
    ... )
    >>> found.fits, len(found.history), found.adversary.group
    (9, 7, 'adaptive')
    """
    settings = _checked(with_defaults(DEFAULTS, options, red_team), budget, seed)
    if not callable(getattr(estimator, "fit", None)):
        raise TypeError(f"estimator must have fit(A, y) and then signal_, got {type(estimator).__name__}.")
    # The smallest world there is: whatever is wrong with the settings is said here, and not by a worker.
    _world(_Fit(None, 1, 1, 0), settings)
    name = _name(estimator)
    kept = TrialStore(store, {"version": _version(), "estimator": name, **settings._asdict()})
    search = _Search(estimator, settings, kept, worker_count(workers), progress)
    try:
        search.explore()
        search.confirm()
    except KeyboardInterrupt as interrupt:
        told = "" if kept.path is None else f" All are in {kept.path.name}; the same call goes on from there."
        raise RedTeamInterrupted(
            f"interrupted after {len(kept.trials['search'])} of {search.attacks} attacks.{told}", search.result(name)
        ) from interrupt
    result = search.result(name)
    assert result is not None
    return result


def _checked(given: RedTeamOptions, budget: int, seed: int) -> RedTeamSettings:
    n, m, confirm_n, confirm_m = given["n"], given["m"], given["confirm_n"], given["confirm_m"]
    settings = RedTeamSettings(
        contamination=float(given["contamination"]),
        n=check_size("n", n),
        m=check_size("m", m),
        noise=check_choice("noise", given["noise"], NOISES),
        noise_std=float(given["noise_std"]),
        noise_mean=float(given["noise_mean"]),
        field=given["field"],
        budget=check_size("budget", budget),
        seeds_per_attack=check_size("seeds_per_attack", given["seeds_per_attack"]),
        restarts=check_size("restarts", given["restarts"]),
        confirm=0 if given["confirm"] == 0 else check_size("confirm", given["confirm"]),
        confirm_n=check_size("confirm_n", n if confirm_n is None else confirm_n),
        confirm_m=check_size("confirm_m", m if confirm_m is None else confirm_m),
        top=check_size("top", given["top"]),
        seed=int(seed),
    )
    least = 2 * settings.seeds_per_attack
    if budget < least:
        raise ValueError(
            f"budget must be at least twice seeds_per_attack, {least}: once without an attack and once with one; got {budget}."
        )
    return settings


class _Search:
    """A search under way: what to try next follows from the seed and from what was tried."""

    def __init__(
        self, estimator: Any, settings: RedTeamSettings, store: TrialStore, workers: int, progress: Progress | None
    ) -> None:
        self.estimator, self.settings, self.store = estimator, settings, store
        self.workers, self.progress = workers, progress
        #: How many attacks the budget allows, no attack counted as one.
        self.attacks = settings.budget // settings.seeds_per_attack
        self.tried: list[Trial] = []
        self.confirmed: list[Trial] = []
        self.rng = np.random.default_rng([settings.seed, 0])
        self.search_seeds = _seeds(settings.seed, 1, settings.seeds_per_attack)
        self.fresh_seeds = _seeds(settings.seed, 2, settings.confirm)

    def explore(self) -> None:
        """Open the search, then climb from the best of the openings."""
        self._try([None])
        count = min(max(round(OPENING * self.attacks), 1), self.attacks - 1)
        self._try(_as_vectors(openings(count, self.rng)))
        starts = most_distinct(self.tried[1:], self.settings.restarts)
        for place, start in enumerate(starts):
            left = self.attacks - len(self.tried)
            self._climb(np.asarray(start.vector), left // (len(starts) - place))

    def _climb(self, start: Points, count: int) -> None:
        strategy = EvolutionStrategy(start, WIDTH, self.rng)
        while count > 0:
            asked = strategy.ask()[:count]
            trials = self._try(_as_vectors(asked))
            # What the store holds is learnt from, should another machine have rounded differently.
            points = np.array([trial.vector for trial in trials])
            strategy.tell(points, np.array([trial.mean for trial in trials]))
            count -= len(asked)

    def confirm(self) -> None:
        """Run the worst attacks in fresh worlds."""
        known = self.settings
        if known.confirm == 0:
            return
        worst = [trial.vector for trial in self.worst()]
        done = self.store.trials["confirmation"][: len(worst)]
        self.confirmed.extend(done)
        fits = [
            _Fit(vector, known.confirm_n, known.confirm_m, seed)
            for vector in worst[len(done) :]
            for seed in self.fresh_seeds
        ]
        self._run(fits, "confirmation", self.confirmed, len(self.fresh_seeds), len(worst))

    def worst(self) -> list[Trial]:
        """The worst attacks so far, as far as possible different ones."""
        return most_distinct(self.tried[1:], self.settings.top)

    def result(self, name: str) -> RedTeamResult | None:
        """What was found so far; None if that is nothing."""
        if len(self.tried) < 2:
            return None
        fits = sum(len(trial.errors) for trial in (*self.tried, *self.confirmed))
        return RedTeamResult(
            method=name,
            settings=self.settings,
            attacks=found_attacks(self.worst(), self.confirmed, self.settings.noise),
            clean_error=self.tried[0].mean,
            history=tuple(trial.mean for trial in self.tried[1:]),
            fits=fits,
        )

    def _try(self, vectors: Sequence[Vector | None]) -> list[Trial]:
        """Trials of these attacks, those that the store knows from there."""
        first = len(self.tried)
        stored = self.store.trials["search"][first : first + len(vectors)]
        if any(not _same(trial.vector, vector) for trial, vector in zip(stored, vectors, strict=False)):
            raise ValueError(
                "the store holds other attacks than this search asks for: another version of the search, or another hand, has "
                "written it. Choose another name for store."
            )
        self.tried.extend(stored)
        known = self.settings
        fits = [
            _Fit(vector, known.n, known.m, seed)
            for vector in vectors[len(self.tried) - first :]
            for seed in self.search_seeds
        ]
        self._run(fits, "search", self.tried, len(self.search_seeds), self.attacks)
        return self.tried[first:]

    def _run(self, fits: list[_Fit], part: str, trials: list[Trial], each: int, total: int) -> None:
        """Make the fits in parallel; every ``each`` of them are a trial, which is kept at once."""
        work = partial(_error, estimator=self.estimator, settings=self.settings)
        errors: list[float | None] = []
        with closing(in_processes(work, fits, self.workers)) as outcomes:
            for fit, error in zip(fits, outcomes, strict=True):
                errors.append(error)
                if len(errors) < each:
                    continue
                counted = tuple(NO_ANSWER if value is None else value for value in errors)
                trial = Trial(fit.vector, counted, errors.count(None))
                errors = []
                trials.append(trial)
                self.store.add(part, trial)
                if self.progress is not None:
                    worst = max(trials[1:] if part == "search" else trials, key=lambda t: t.mean, default=trial)
                    self.progress(len(trials), total, f"{part}, largest error {worst.mean:.3f}")


def openings(count: int, rng: np.random.Generator) -> Points:
    """Attacks to begin with: the known ones, then random ones, evenly spread."""
    known = np.array([attack.to_vector() for attack in KNOWN])[:count]
    spread = qmc.LatinHypercube(len(FAMILY), rng=rng).random(max(count - len(known), 1))
    return rounded(np.vstack((known, spread))[:count])


def most_distinct(trials: list[Trial], count: int) -> list[Trial]:
    """The ``count`` trials with the largest errors, those left out that resemble a worse one unless there are too few."""
    ordered = sorted(trials, key=lambda trial: -trial.mean)
    chosen: list[Trial] = []
    for trial in ordered:
        if all(_apart(trial, other) > APART for other in chosen):
            chosen.append(trial)
    others = [trial for trial in ordered if trial not in chosen]
    return sorted((chosen + others)[:count], key=lambda trial: -trial.mean)


def _same(one: Vector | None, other: Vector | None) -> bool:
    """Whether two vectors are equal but for what another machine may have rounded differently."""
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and bool(np.allclose(one, other, rtol=0.0, atol=1e-3))


def _apart(one: Trial, other: Trial) -> float:
    return float(np.sqrt(np.mean((np.asarray(one.vector) - np.asarray(other.vector)) ** 2)))


def _error(fit: _Fit, *, estimator: Any, settings: RedTeamSettings) -> float | None:
    """Relative error of the estimator in a world; None if it gives no answer."""
    world = _world(fit, settings)
    try:
        with warnings.catch_warnings():
            # What a method says of an attack is not what is measured.
            warnings.simplefilter("ignore")
            fresh = clone(estimator) if hasattr(estimator, "get_params") else copy.deepcopy(estimator)
            fresh.fit(world.A, world.y)
            signal, _ = read_answer(fresh.signal_, fit.n)
    except Exception:
        # The method is anybody's: whatever it raises, it has given no answer, which is counted.
        return None
    return float(distance(signal, world.truth, relative=True))


def _world(fit: _Fit, settings: RedTeamSettings) -> Any:
    attack = None if fit.vector is None else ParametricAttack.from_vector(fit.vector, settings.noise)
    return make_world(
        fit.n,
        fit.m,
        contamination=settings.contamination,
        attack="none" if attack is None else attack.adversary,
        noise=settings.noise,
        noise_std=settings.noise_std,
        noise_mean=settings.noise_mean,
        field=settings.field,
        seed=fit.seed,
    )


def _seeds(seed: int, stream: int, count: int) -> list[int]:
    """Seeds of worlds; streams have none in common but by chance."""
    return [int(value) for value in np.random.SeedSequence([seed, stream]).generate_state(count)] if count else []


def _as_vectors(points: NDArray[np.float64]) -> list[Vector | None]:
    return [tuple(float(value) for value in point) for point in points]


def _name(estimator: Any) -> str:
    """What to call the estimator, parameters included where it tells them."""
    return " ".join(repr(estimator).split()) if hasattr(estimator, "get_params") else type(estimator).__qualname__


def _version() -> str:
    # At call time: this module is imported while the package is.
    from robustphase import __version__

    return __version__
