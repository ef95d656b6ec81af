"""Labels of samples that are good or bad together: what is accepted, and how it is counted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from robustphase.likelihood import GroupEvidence
from robustphase.problem import Grouping
from robustphase.rows.source import Array


class Labelled(NamedTuple):
    """One column of labels: the distinct labels (G,), in order, and which of them each row has."""

    names: Array
    grouping: Grouping


def check_groups(groups: Any, count: int) -> tuple[Labelled, ...]:
    """One entry for each column of labels, of shape (m,) or (m, g), of ``count`` rows.

    Labels are integers, strings, or anything else that can be hashed; a series or a frame as well, or an array on disk or of
    Dask. Numbers with a fraction are refused: they are no names.
    """
    if groups is None:
        return ()
    if hasattr(groups, "columns") and hasattr(groups, "iloc"):
        columns = [_as_labels(groups.iloc[:, index]) for index in range(groups.shape[1])]
    else:
        labels = _as_labels(groups)
        columns = [labels] if labels.ndim == 1 else list(labels.T)
    if not columns or any(column.ndim != 1 for column in columns):
        raise ValueError(
            f"groups must have shape (m,) or (m, g), one label per row of A, got shape {np.shape(groups)}."
        )
    return tuple(_labelled(column, count, _name(index, len(columns))) for index, column in enumerate(columns))


def group_weights(labelled: Labelled, evidence: GroupEvidence | None) -> Array:
    """Weight of every group; one where they are too small to say anything."""
    return np.ones(labelled.grouping.size) if evidence is None else evidence.weights


def _as_labels(groups: Any) -> Array:
    if isinstance(groups, np.ndarray):
        return groups
    given = groups.to_numpy() if hasattr(groups, "to_numpy") else groups
    if isinstance(given, np.ndarray):
        return given
    if isinstance(given, (str, bytes, dict, set, frozenset)) or not hasattr(given, "__len__"):
        raise TypeError(f"groups must hold one label per row of A, got {type(groups).__name__}.")
    if hasattr(given, "__array__"):
        return np.asarray(given)
    items = list(given)
    # Tuples are labels, such as a pair of frame and pixel; lists are rows of labels.
    if items and all(isinstance(item, (list, np.ndarray)) and np.ndim(item) == 1 for item in items):
        if len({len(item) for item in items}) > 1:
            raise ValueError("groups has rows of different lengths; each row of A needs the same number of labels.")
        return np.array([list(item) for item in items], dtype=object)
    labels = np.empty(len(items), object)
    labels[:] = items
    return labels


def _labelled(column: Array, count: int, name: str) -> Labelled:
    if column.shape[0] != count:
        raise ValueError(f"A has {count} rows but {name} has {column.shape[0]} labels; each row needs exactly one.")
    if column.dtype.kind == "c":
        raise TypeError(f"{name} holds complex numbers; labels are integers, strings or the like.")
    missing = _missing(column)
    if missing.any():
        raise ValueError(
            f"{int(missing.sum())} labels of {name} are missing (first: row {int(np.flatnonzero(missing)[0])}). Give samples "
            "that belong to no group a label of their own, each a different one."
        )
    fractions = _fractions(column)
    if fractions.any():
        first = int(np.flatnonzero(fractions)[0])
        raise ValueError(
            f"{int(fractions.sum())} labels of {name} are numbers with a fraction (first: {column[first]!s} in row {first}), as "
            "measurements are. Labels are integers, strings or the like; if you do mean equal numbers, turn them into strings."
        )
    try:
        names, codes = np.unique(column, return_inverse=True)
    except TypeError:
        names, codes = _by_appearance(column, name)
    if names.size < 2:
        raise ValueError(
            f"all {count} labels of {name} are {names[0]!r}: a single group is compared with nothing. Leave groups out, or "
            "label which samples belong together."
        )
    if names.size == count:
        raise ValueError(
            f"all {count} labels of {name} differ: no two samples share a group, so there is no shared evidence. Check that "
            "groups holds labels, not sample numbers."
        )
    return Labelled(names, Grouping(codes.reshape(-1), int(names.size)))


def _missing(column: Array) -> Array:
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.getmaskarray(column) | _missing(column.data)
    if column.dtype.kind == "f":
        return np.asarray(~np.isfinite(column))
    if column.dtype.kind in "mM":
        return np.asarray(np.isnat(column))
    if column.dtype.kind != "O":
        return np.zeros(column.shape[0], bool)
    return np.array([label is None or _unequal_to_itself(label) for label in column], bool)


def _fractions(column: Array) -> Array:
    """Which labels are numbers that are not whole."""
    if column.dtype.kind == "f":
        return np.asarray(column != np.rint(column))
    if column.dtype.kind != "O":
        return np.zeros(column.shape[0], bool)
    return np.array([isinstance(label, (float, np.floating)) and not label.is_integer() for label in column], bool)


def _unequal_to_itself(label: Any) -> bool:
    """Whether a label is NaN, NaT or pandas' NA, which has no truth value."""
    try:
        return bool(label != label)
    except TypeError:
        return True


def _by_appearance(column: Array, name: str) -> tuple[Array, Array]:
    """Labels that cannot be sorted, in the order in which they appear."""
    places: dict[Any, int] = {}
    try:
        codes = np.array([places.setdefault(label, len(places)) for label in column])
    except TypeError as error:
        raise TypeError(f"{name} holds labels that cannot be told apart: {error}. Use integers or strings.") from error
    names = np.empty(len(places), object)
    names[:] = list(places)
    return names, codes


def _name(index: int, columns: int) -> str:
    return "groups" if columns == 1 else f"column {index} of groups"
