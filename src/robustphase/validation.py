"""What the public functions accept, and the errors they give for everything else.

Each check returns the value in the form the algorithms use, or raises an error that says what was wrong, where, and
what to do. Data is looked at through passes, so a check costs one sweep and no memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustphase.rows import (
    MaskedRows,
    OperatorRows,
    RealRows,
    RescaledRows,
    RowSource,
    ScaledRows,
    as_source,
    extreme_rows,
    look_at_rows,
    row_peaks,
)
from robustphase.rows.opening import as_array
from robustphase.rows.source import Array

#: What to do with samples that hold NaN or infinities. Finite numbers of any size are contamination, survived as such.
NONFINITE = ("raise", "drop")
#: Where the signal lives: where the type of the rows says, or as told.
FIELDS = ("auto", "real", "complex")
#: Rows with entries that many times smaller or larger than one are divided by their size before anything else.
EXTRAORDINARY = 1e3
#: A row whose largest entry is that many times larger than that of a typical row is contaminated.
FAR_TOO_LONG = 1e7
#: Where typical responses are smaller than this, their squares are lost among numbers that vanish.
SMALLEST_RESPONSE = float(np.finfo(np.float64).tiny) ** 0.5


class Samples(NamedTuple):
    """Checked covariates and responses."""

    source: RowSource  # The covariates; dropped rows read as zero
    responses: Array  # (m,): the responses; those of dropped samples are zero. For many signals of shape (m, p).
    dropped: Array  # bool, of the same shape: samples that cannot be used, to be counted as contaminated
    #: Median over the rows that are neither dropped nor zero of the largest entry. One if nobody has looked.
    peak: float = 1.0
    #: The rows are real and the signal is complex: a pair of real ones, of which the conjugate is the same signal.
    paired: bool = False
    #: The rows are standard normal as far as anybody has looked; otherwise their law is asked from themselves.
    normal: bool = True
    looked_at: Array | None = None  # (k, n): some of the rows that are not dropped, where somebody has asked for them


def check_contamination(contamination: Any, *, allow_auto: bool = False) -> float | str:
    """A fraction in [0, 0.5), or ``"auto"`` where that is allowed."""
    words = ' or "auto"' if allow_auto else ""
    if allow_auto and isinstance(contamination, str) and contamination == "auto":
        return contamination
    if isinstance(contamination, bool) or not isinstance(contamination, (int, float, np.integer, np.floating)):
        raise TypeError(f"contamination must be a number in [0, 0.5){words}, got {contamination!r}.")
    value = float(contamination)
    if not 0 <= value < 0.5:
        hint = f" Did you mean {value / 100:g} ({value:g} percent)?" if 1 <= value < 50 else ""
        if 0.5 <= value < 1:
            hint = " With half of the data bad nobody can tell the good half from the bad one."
        raise ValueError(f"contamination must be a number in [0, 0.5){words}, got {contamination!r}.{hint}")
    return value


def check_fraction(name: str, value: Any) -> float:
    """A number strictly between 0 and 1, such as the confidence parameter ``delta``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number between 0 and 1, got {value!r}.")
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
    return str(value)


def check_responses(responses: Any, count: int, *, many: bool = False) -> Array:
    """One real number per sample (and signal, if there may be many), as float64.

    NaN and infinities are left for :func:`check_samples` to judge.
    """
    y = as_array(responses, name="y")
    if y.dtype.kind == "c":
        # A value and not a type error, in these words, because scikit-learn's users and checks know it so.
        raise ValueError(
            "y holds complex numbers. Complex data not supported as responses: they are squared magnitudes and real. "
            "Pass np.abs(y)**2."
        )
    if y.dtype.kind not in "fiub":
        raise TypeError(f"y must hold numbers, got dtype {y.dtype}. Convert it, for example y.astype(float).")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 and not (many and y.ndim == 2 and y.shape[1] > 0):
        raise ValueError(f"y must be one-dimensional, one response per row of A, got shape {y.shape}.")
    if y.shape[0] != count:
        raise ValueError(f"A has {count} rows but y has {y.shape[0]} responses; each row needs exactly one.")
    return y.astype(np.float64)


def check_samples(
    covariates: Any,
    responses: Any,
    *,
    nonfinite: str = "raise",
    enough: bool = True,
    many: bool = False,
    field: str = "auto",
    look: int = 0,
) -> Samples:
    """Covariates and responses that belong together and can be computed with.

    Parameters
    ----------
    covariates : RowSource, array-like of shape (m, n) or linear operator
        ``A``.
    responses : array-like of shape (m,), or (m, p) if there may be many signals
        ``y``.
    nonfinite : {"raise", "drop"}
        What to do with samples that hold NaN or infinities: raise an error, or hide them and report them as dropped.
        Samples with finite entries so large that their powers overflow are dropped in either case.
    enough : bool, default=True
        Ask for at least as many samples as unknowns.
    many : bool, default=False
        Allow one column of responses for each of several signals.
    field : {"auto", "real", "complex"}, default="auto"
        Where the signal lives; ``"auto"`` follows the dtype of ``A``.
    look : int, default=0
        How many rows to bring along, for whoever wants to know their law.

    Returns
    -------
    Samples
    """
    check_choice("nonfinite", nonfinite, NONFINITE)
    check_choice("field", field, FIELDS)
    source = as_source(covariates)
    m, n = source.shape
    y = check_responses(responses, m, many=many)
    if enough and m < n:
        few = "1 sample cannot" if m == 1 else f"{m} samples cannot"
        raise ValueError(
            f"A has {m} rows and {n} columns: fewer samples than unknowns, and {few} determine the signal. "
            f"Collect at least {4 * n} samples, or check that A is not transposed."
        )
    looked_at: Array | None = None
    peak, bad_rows, is_complex = 1.0, np.zeros(m, bool), source.dtype.kind == "c"
    if isinstance(source, OperatorRows):
        source.examine()
    else:
        # The same rows in every fit of the same data, wherever it lies, and without a pattern that data may have too.
        chosen = np.sort(np.random.default_rng(m).choice(m, min(look, m), replace=False))
        peaks, turned, some = look_at_rows(source, chosen)
        bad_rows = _unusable(peaks, nonfinite, largest_safe(source.dtype), "A", "rows")
        bad_rows |= _far_too_long(peaks, ~bad_rows)
        peak = _typical_peak(peaks[~bad_rows], source.dtype)
        source = MaskedRows(source, bad_rows) if bad_rows.any() else source
        if is_complex and turned[~bad_rows].mean() < 0.5:
            # Complex in type alone. The few rows that do turn are not of this design, wherever their real parts lie.
            source, some = RealRows(source), some.real
        looked_at = some[~bad_rows[chosen]] if look else None
    if field == "real" and source.dtype.kind == "c":
        raise ValueError(
            'field="real" asks for a real signal, but the rows of A are complex. Pass A.real if their imaginary parts mean '
            'nothing; otherwise field="complex", and the real part of the answer in the phase that makes it largest.'
        )
    paired = source.dtype.kind != "c" and (field == "complex" or (field == "auto" and is_complex))
    bad_responses = _unusable(np.abs(y), nonfinite, largest_safe(y.dtype), "y", "responses")
    sizes = np.abs(y[~bad_responses])
    typical = float(np.median(sizes[sizes > 0])) if sizes.any() else 1.0
    if typical < SMALLEST_RESPONSE:
        raise ValueError(
            f"a typical response of y is {typical:.1e}, too small to compute with. Divide y by {typical:.0e}; the signal is "
            f"then {typical**-0.5:.0e} times larger."
        )
    if y.ndim == 2:
        return _samples_of_many(source, y, bad_rows, bad_responses, peak)._replace(paired=paired, looked_at=looked_at)
    dropped = bad_rows | bad_responses
    if dropped.all():
        raise ValueError("every sample holds NaN, infinite or overflowing entries; nothing is left to work with.")
    # Rows of an operator cannot be hidden, and are finite; the weight of zero that goes with dropping is enough.
    if bad_responses.any() and not isinstance(source, OperatorRows):
        source = MaskedRows(source, bad_responses)
    return Samples(source, np.where(dropped, 0.0, y), dropped, peak, paired, looked_at=looked_at)


def in_ordinary_units(samples: Samples) -> tuple[Samples, float]:
    """Samples whose rows have entries of about one, and the number that their rows were divided by: mostly one.

    Only rows whose entries are smaller or larger by ``EXTRAORDINARY`` are divided, by the root mean square of the entries of
    a typical row; others are what the user means them to be. Signals belong to the rows: those of the divided rows are this
    number times as long.
    """
    if 1 / EXTRAORDINARY <= samples.peak <= EXTRAORDINARY:
        return samples, 1.0
    lengths = np.sqrt(ScaledRows(RescaledRows(samples.source, samples.peak)).squared_distances())
    size = samples.peak * float(np.median(lengths[lengths > 0])) / float(np.sqrt(samples.source.shape[1]))
    looked_at = None if samples.looked_at is None else samples.looked_at / size
    rescaled = samples._replace(
        source=RescaledRows(samples.source, size), peak=samples.peak / size, looked_at=looked_at
    )
    return rescaled, size


def _far_too_long(peaks: Array, usable: Array) -> Array:
    """Which usable rows no design can have: their gradients, of fourth order in them, overflow single precision."""
    some = peaks[usable & (peaks > 0)]
    return usable & (peaks > FAR_TOO_LONG * np.median(some)) if some.size else np.zeros(peaks.size, bool)


def _typical_peak(peaks: Array, dtype: np.dtype[Any]) -> float:
    """Median of the largest entries of rows that can be used and are not zero; an error where they vanish."""
    some = peaks[peaks > 0]
    if peaks.size and not some.size:
        raise ValueError(
            f"all entries of A are zero (in {peaks.size} rows): there is nothing to recover a signal from. Check how A was read."
        )
    typical = float(np.median(some)) if some.size else 1.0
    if typical < 1 / largest_safe(dtype):
        unit = 10.0 ** np.floor(np.log10(typical))
        raise ValueError(
            f"the entries of A are of the order of {unit:.0e}, too small to compute with in {dtype.name}. "
            f"Divide A by {unit:.0e}; the signal is then that much smaller."
        )
    return typical


def _samples_of_many(source: RowSource, y: Array, bad_rows: Array, bad_responses: Array, peak: float) -> Samples:
    """Samples with one column of responses per signal; a row is hidden only if no signal can use it."""
    dropped = bad_rows[:, np.newaxis] | bad_responses
    lost = np.flatnonzero(dropped.all(axis=0))
    if lost.size:
        raise ValueError(
            f"every response in column {int(lost[0])} of y is NaN, infinite or overflowing; nothing is left to work with. "
            "Leave that column out."
        )
    return Samples(source, np.where(dropped, 0.0, y), dropped, peak)


def hide_extremes(source: RowSource, nonfinite: str, *, name: str = "A") -> tuple[RowSource, Array]:
    """Hide the rows that cannot be computed with; return the source to use and which rows were hidden.

    Rows that hold NaN or infinities are refused if ``nonfinite`` says so. Rows with finite entries too large to compute with
    are contaminated, whoever wrote them; but if most rows have such entries, it is the scale of the data, and an error says
    what to divide by.

    Nobody can look at the rows of an operator, so its products are examined instead, and nothing is hidden.
    """
    if isinstance(source, OperatorRows):
        source.examine()
        return source, np.zeros(source.shape[0], bool)
    bad = _unusable(row_peaks(source), nonfinite, largest_safe(source.dtype), name, "rows")
    return (MaskedRows(source, bad), bad) if bad.any() else (source, bad)


def hide_nonfinite(source: RowSource, nonfinite: str) -> tuple[RowSource, Array]:
    """Refuse or hide the rows that hold NaN or infinities, and no others; see :func:`hide_extremes`."""
    if isinstance(source, OperatorRows):
        return hide_extremes(source, nonfinite)
    bad = _unusable(row_peaks(source), nonfinite, float(np.finfo(np.float64).max), "A", "rows")
    return (MaskedRows(source, bad), bad) if bad.any() else (source, bad)


def _unusable(sizes: Array, nonfinite: str, limit: float, name: str, what: str) -> Array:
    """Which rows or responses of these sizes must be hidden (boolean, of the same shape), unless an error is due."""
    bad = extreme_rows(sizes, limit=limit)
    if not bad.any():
        return bad
    broken = ~np.isfinite(sizes)
    if nonfinite == "raise" and broken.any():
        raise ValueError(_nonfinite_message(name, what, broken))
    finite = sizes[~broken]
    if np.count_nonzero(finite > limit) > 0.5 * finite.size:
        raise ValueError(_scale_message(name, what, finite, limit))
    return bad


def largest_safe(dtype: np.dtype[Any]) -> float:
    """Largest entry that can enter the products of a pass over rows of this type.

    In double precision its eighth power must be a number: the certificate of a gradient squares ``(s² − y) s a``, which
    is of eighth order in the entries of ``A``. Single precision is only used for products with normalised vectors and
    for norms, so there the square is enough.
    """
    largest = float(np.finfo(dtype).max)
    return float(largest ** (1 / 8) * 1e-2 if largest > 1e300 else largest**0.5 * 1e-2)


def _nonfinite_message(name: str, what: str, bad: Array) -> str:
    first = int(np.flatnonzero(bad if bad.ndim == 1 else bad.any(axis=1))[0])
    return (
        f"{int(bad.sum())} {what} of {name} hold NaN or infinite entries (first: row {first}). "
        'Drop them, or pass nonfinite="drop" to count them as contaminated.'
    )


def _scale_message(name: str, what: str, sizes: Array, limit: float) -> str:
    unit = 10.0 ** np.floor(np.log10(np.median(sizes)))
    effect = {
        "A": " The signal is then that much larger.",
        "y": f" The signal is then {np.sqrt(unit):.0e} times smaller.",
    }
    return (
        f"{np.count_nonzero(sizes > limit)} of {sizes.size} {what} of {name} are larger than {limit:.1e}, too large to compute "
        f"with; so many are the scale of the data, not contamination. Divide {name} by {unit:.0e}.{effect.get(name, '')}"
    )
