"""A fit to very many samples on the workers of a Dask cluster, of which nothing comes here but sums and a pilot.

Rows and responses stay on the workers. Some of them, drawn at random, are brought here and fitted in memory; the rule of that
fit weighs all the others where they are (:mod:`robustphase.recover.pilot`), and the likelihood of all is climbed with
sums. So neither the memory of this process nor what travels in a pass grows with the number of samples. The answer is that of
the same samples in memory, which are fitted in the same two steps. What is said of every sample comes back as a Dask array.

Samples for which a pilot does not serve are fitted as those in memory are, with the numbers of all samples here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from robustphase.constants import TINY
from robustphase.descend.climb import Free, climb
from robustphase.estimator.history import Clock, Iteration, Note
from robustphase.likelihood import NoiseModel
from robustphase.population import distance
from robustphase.problem import kept
from robustphase.recover.pilot import (
    ALL_SAMPLES,
    PER_SAMPLE,
    Column,
    RuleAsGiven,
    WeighedRows,
    fits_in_memory,
    pilot_rows,
)
from robustphase.rows import DaskRows, RowSource
from robustphase.rows.products import abs2, project_block
from robustphase.rows.source import Array, Parts
from robustphase.validation import largest_safe


def fit_on_workers(
    estimator: Any, source: RowSource, y: Any, groups: Any, level: float | str, note: Note
) -> str | None:
    """Fit the estimator; what to warn of, or None where a pilot does not serve and nothing was fitted.

    The responses are a Dask array of shape (m,). No pilot knows of groups. ``note`` takes every record of the history.
    """
    if not (isinstance(source, DaskRows) and source.on_workers and hasattr(y, "__dask_graph__")):
        return None
    if groups is not None or not _is_plain(estimator) or y.shape != source.shape[:1]:
        return None
    clock, (m, n) = Clock(source), source.shape
    chosen, responses = pilot_rows(m, n, estimator._seed), source.beside(y)
    if chosen is None or not _is_ordinary(source, responses):
        return None
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
    as_given = RuleAsGiven(pilot._size, pilot._standard.changes, rule, rule.state)
    weighed = WeighedRows(as_given.standard(source), responses, rule)
    reached = climb(weighed.problem(), rule.state, ALL_SAMPLES._replace(exact_passes=0), Free.SHAPE)
    as_given = as_given._replace(state=reached.state(rule.levels))
    passes, seconds = clock.now()
    note(Iteration("all samples", moved=reached.moves[-1], passes=passes, seconds=seconds))
    estimator.__dict__.update(_attributes(pilot, as_given, _kept(weighed, as_given), m))
    estimator.__dict__.update(_per_sample(source, y, as_given))
    estimator.converged_ = bool(pilot.converged_ and reached.converged.all())
    return str(message)


def _is_plain(estimator: Any) -> bool:
    """Whether the estimator finds one signal by the engine, and takes all samples for alike."""
    alike = all(getattr(estimator, name) is None for name in ("saturation", "background", "drift"))
    by_engine = estimator.step == "newton" and estimator.batches == 1 and estimator.polish
    found = isinstance(estimator.init, str) and estimator.init == "auto"
    return alike and by_engine and found and estimator.noise != "poisson"


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


class _Kept(NamedTuple):
    """How many samples are kept, and the sum of their residuals."""

    number: float
    residuals: float


def _kept(weighed: WeighedRows, as_given: RuleAsGiven) -> _Kept:
    rule, state = as_given.rule, as_given.state

    def kernel(block: Array, y: Array, w: Array) -> Parts:
        projections = project_block(block, state.signals)
        counted = rule.weigh(state, y, projections, w).counted
        keep = kept(np.clip(counted * w, 0.0, 1.0))
        return Parts(sums=(np.array([keep.sum(), ((y - abs2(projections)) * keep).sum() * rule.unit]),))

    columns = (weighed.column(Column.RESPONSES), weighed.column(Column.WEIGHTS))
    return _Kept(*weighed.reduce(kernel, columns).sums[0].tolist())


def _attributes(pilot: Any, as_given: RuleAsGiven, those: _Kept, m: int) -> dict[str, Any]:
    """What is known of all samples together; the rest is the pilot's."""
    state, unit = as_given.state, as_given.rule.unit
    signal = pilot._marked(pilot._standard.back(np.sqrt(unit) * state.signals)[:, 0] / as_given.size)
    noise = state.noise._replace(scales=unit * state.noise.scales)
    known = {name: value for name, value in vars(pilot).items() if name.endswith("_") or name.startswith("_")}
    known.pop("history_")
    norm = max(float(np.linalg.norm(signal)), TINY)
    return known | {
        "signal_": signal,
        # The pilot vouches for its own answer; this one is not farther from the truth than both together.
        "certificate_": pilot.certificate_ + distance(signal, pilot.signal_) / norm,
        "noise_model_": NoiseModel(*(part[0].item() for part in noise)),
        "noise_scale_": noise.scales[0].item(),
        "residual_centre_": (unit * state.backgrounds)[0].item(),
        "noise_mean_": those.residuals / max(those.number, 1.0) if pilot.noise_mean == "unknown" else 0.0,
        "contamination_": 1 - those.number / m if isinstance(pilot.contamination, str) else pilot.contamination_,
    }


def _per_sample(source: DaskRows, y: Any, as_given: RuleAsGiven) -> dict[str, Any]:
    """What is said of every sample, computed where the samples are when somebody asks."""
    aligned = y.rechunk((source.array.chunks[0],))
    said = source.array.map_blocks(
        lambda rows, values: as_given.weigh(rows, values[:, 0]),
        aligned[:, np.newaxis],
        dtype=np.float64,
        chunks=(source.array.chunks[0], (len(PER_SAMPLE),)),
    )
    return {name: said[:, column] for column, name in enumerate(PER_SAMPLE)}
