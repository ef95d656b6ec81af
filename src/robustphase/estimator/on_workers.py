"""A fit to very many samples on the workers of a Dask cluster, of which nothing comes here but sums and a pilot.

Rows and responses stay on the workers. Some of them, drawn at random, are brought here and fitted in memory; the rule of that
fit weighs all the others where they are (:mod:`robustphase.recover.judged_rows`), and the likelihood of all is climbed with
sums. So neither the memory of this process nor what travels in a pass grows with the number of samples. The answer is that of
the same samples in memory, which are fitted in the same two steps. What is said of every sample comes back as a Dask array.

Samples for which a pilot does not serve are fitted as those in memory are, with the numbers of all samples here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from robustphase.descend.likelihood_fit import Free, climb
from robustphase.descend.objective import State
from robustphase.estimator.history import Clock, Iteration, Note
from robustphase.initialise.standardise import Change
from robustphase.likelihood import NoiseModel
from robustphase.population import distance
from robustphase.problem import kept
from robustphase.recover.judged_rows import Column, JudgedRows
from robustphase.recover.pilot import fits_in_memory, pilot_rows, stopping
from robustphase.recover.sample_rule import SampleRule
from robustphase.rows import DaskRows, RescaledRows, RowSource
from robustphase.rows.passes import abs2, project_block
from robustphase.rows.source import Array, Parts
from robustphase.validation import largest_safe

#: What is said of every sample, in the order of the columns of a judgement.
PER_SAMPLE = ("weights_", "residual_weights_", "covariate_weights_", "_probabilities")


@dataclass(frozen=True)
class Sight:
    """How rows as they were given become standard ones, and what is said of samples behind those."""

    size: float
    changes: tuple[Change, ...]
    rule: SampleRule
    state: State

    def rows(self, source: RowSource) -> RowSource:
        """The standard rows."""
        source = RescaledRows(source, self.size) if self.size != 1 else source
        for change in self.changes:
            source = change.rows(source)
        return source

    def block(self, rows: Array) -> Array:
        """Some rows made standard."""
        rows = rows / self.size
        for change in self.changes:
            # W is Hermitian, so that rows change as the adjoints of signals do.
            rows = change.back(rows.conj().T).conj().T
        return rows

    def judgement(self, rows: Array, responses: Array) -> Array:
        """What is said of some samples, shape (b, 4): see :data:`PER_SAMPLE`."""
        block = self.block(rows)
        scaled = responses.reshape(-1, 1) / self.rule.unit
        weights = self.rule.row_weights(block)
        judged = self.rule.judge(self.state, scaled, project_block(block, self.state.signals), weights)
        return np.hstack(
            (np.clip(judged.counted * weights, 0.0, 1.0), judged.squares * weights, weights, judged.clean * weights)
        )


def is_served(estimator: Any, source: RowSource, y: Any, groups: Any) -> bool:
    """Whether the rows and responses are many, on workers, and to be taken for alike."""
    if not (isinstance(source, DaskRows) and source.on_workers and hasattr(y, "__dask_graph__")):
        return False
    plain = groups is None and all(getattr(estimator, name) is None for name in ("saturation", "background", "drift"))
    by_engine = estimator.step == "newton" and estimator.batches == 1 and estimator.polish
    found = isinstance(estimator.init, str) and estimator.init == "auto"
    alike = np.ndim(y) == 1 and estimator.noise != "poisson" and source.shape[:1] == y.shape
    return plain and by_engine and found and alike and pilot_rows(*source.shape, estimator._seed) is not None


def fit_on_workers(estimator: Any, source: DaskRows, y: Any, level: float | str, note: Note) -> str | None:
    """Fit the estimator; what to warn of, or None where a pilot does not serve and nothing was fitted.

    Parameters
    ----------
    estimator : RobustPhaseRetrieval
        What to fit.
    source : DaskRows
        The rows.
    y : dask.array.Array of shape (m,)
        The responses.
    level : float or "auto"
        ε.
    note : callable
        Takes every record of the history.
    """
    clock, (m, n) = Clock(source), source.shape
    responses = source.beside(y)
    if not _is_ordinary(source, responses):
        return None
    chosen = pilot_rows(m, n, estimator._seed)
    assert chosen is not None
    pilot = clone(estimator).set_params(callback=None, verbose=False, random_state=estimator._seed)
    pilot._seed = estimator._seed
    # Too many rows to bring here are fitted where they are; the numbers of each stay few.
    rows = source.take(chosen) if fits_in_memory(chosen, source) else source.array[chosen]
    message, _ = pilot._fit(rows, np.asarray(y[chosen].compute()), None, level, None, None)
    if pilot._rule is None or not pilot.converged_ or not isinstance(pilot.noise_model_, NoiseModel):
        return None
    for record in pilot.history_:
        note(record._replace(passes=clock.now()[0]))
    rule = pilot._rule.for_more(m / chosen.size)
    sight = Sight(pilot._size, pilot._standard.changes, rule, rule.state)
    judged = JudgedRows(sight.rows(source), responses, rule)
    reached = climb(judged.problem(), rule.state, stopping(rule, m, n)._replace(exact_passes=0), Free.SHAPE)
    sight = Sight(sight.size, sight.changes, rule, reached.state(rule.levels))
    passes, seconds = clock.now()
    note(Iteration("all samples", moved=reached.moves[-1], passes=passes, seconds=seconds))
    count, total = _kept_residuals(judged, sight)
    estimator.__dict__.update(_attributes(pilot, sight, float(count), float(total), m))
    estimator.__dict__.update(_per_sample(source, y, sight))
    estimator.converged_ = bool(pilot.converged_ and reached.converged.all())
    return str(message)


def _is_ordinary(source: RowSource, responses: Any) -> bool:
    """Whether all numbers can be computed with; whoever looks at them one by one says which cannot."""
    safe, safe_response = largest_safe(source.dtype), largest_safe(np.dtype(np.float64))

    def kernel(block: Array, y: Array) -> Parts:
        real = block.view(block.real.dtype) if block.dtype.kind == "c" and block.flags.c_contiguous else block
        # Written so that NaN counts as extraordinary.
        strange = ~(np.abs(real) <= safe).all() + ~(np.abs(y) <= safe_response).all()
        turned = np.any(block.imag, axis=1).sum() if block.dtype.kind == "c" else block.shape[0]
        return Parts(sums=(np.array([float(strange), float(turned)]),))

    strange, turned = source.reduce(kernel, (responses,)).sums[0]
    # Rows that are complex in type alone are taken for real ones.
    return bool(strange == 0 and turned >= 0.5 * source.shape[0])


def _kept_residuals(judged: JudgedRows, sight: Sight) -> tuple[float, float]:
    """How many samples are kept, and the sum of their residuals."""
    rule, state = sight.rule, sight.state

    def kernel(block: Array, y: Array, w: Array) -> Parts:
        projections = project_block(block, state.signals)
        counted = rule.judge(state, y, projections, w).counted
        keep = kept(np.clip(counted * w, 0.0, 1.0))
        return Parts(sums=(np.array([keep.sum(), ((y - abs2(projections)) * keep).sum() * rule.unit]),))

    count, total = judged.reduce(kernel, (judged.column(Column.RESPONSES), judged.column(Column.WEIGHTS))).sums[0]
    return float(count), float(total)


def _attributes(pilot: Any, sight: Sight, count: float, total: float, m: int) -> dict[str, Any]:
    """What is known of all samples together; the rest is the pilot's."""
    state, unit = sight.state, sight.rule.unit
    signal = pilot._marked(pilot._standard.back(np.sqrt(unit) * state.signals)[:, 0] / sight.size)
    noise = state.noise._replace(scales=unit * state.noise.scales)
    known = {name: value for name, value in vars(pilot).items() if name.endswith("_") or name.startswith("_")}
    known.pop("history_")
    norm = max(float(np.linalg.norm(signal)), np.finfo(np.float64).tiny)
    return known | {
        "signal_": signal,
        # The pilot vouches for its own answer; this one is not farther from the truth than both together.
        "certificate_": pilot.certificate_ + distance(signal, pilot.signal_) / norm,
        "noise_model_": NoiseModel(*(part[0].item() for part in noise)),
        "noise_scale_": noise.scales[0].item(),
        "residual_centre_": (unit * state.backgrounds)[0].item(),
        "noise_mean_": total / max(count, 1.0) if pilot.noise_mean == "unknown" else 0.0,
        "contamination_": 1 - count / m if isinstance(pilot.contamination, str) else pilot.contamination_,
    }


def _per_sample(source: DaskRows, y: Any, sight: Sight) -> dict[str, Any]:
    """What is said of every sample, computed where the samples are when somebody asks."""
    aligned = y.rechunk((source.array.chunks[0],))
    judgement = source.array.map_blocks(
        lambda rows, values: sight.judgement(rows, values[:, 0]),
        aligned[:, np.newaxis],
        dtype=np.float64,
        chunks=(source.array.chunks[0], (len(PER_SAMPLE),)),
    )
    return {name: judgement[:, column] for column, name in enumerate(PER_SAMPLE)}
