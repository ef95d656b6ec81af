"""The mean of a few long vectors some of which are not to be trusted: federated and Byzantine-robust learning.

N workers send updates of a model with d ≫ N weights. All that has to be known of them is their inner products, N × N numbers:
those are computed where the updates live, on whatever device, and the answer is a weighted mean of the updates, computed there
as well. Nothing of their size is copied or moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustphase.means import robust_mean
from robustphase.means.gram import few_and_long, filter_by_products
from robustphase.rows.source import Array
from robustphase.validation import check_contamination

#: Columns of a tensor that are multiplied at a time, over the number of rows: a copy in double precision stays small.
NUMBERS_AT_A_TIME = 1 << 22


def aggregate(updates: Any, contamination: float | str = 0.1) -> Any:
    """Mean of vectors of which a fraction is arbitrary, however long they are.

    Parameters
    ----------
    updates : array or tensor of shape (N, ...), or a list of N arrays or tensors of one shape
        The vectors, one per sender, NumPy or torch. A single array or tensor is not copied.
    contamination : float in [0, 0.5) or "auto", default=0.1
        Fraction of the senders that may be bad, together if they like.

    Returns
    -------
    array or tensor of shape (...)
        Of the kind and precision of the updates, and on their device.

    Examples
    --------
    >>> import numpy as np
    >>> import robustphase as rp
    >>> rng = np.random.default_rng(0)
    >>> updates = 1 + rng.standard_normal((20, 10000)).astype(np.float32)
    >>> updates[:4] = -1  # four senders have agreed on something else
    >>> float(np.abs(rp.aggregate(updates, 0.2) - updates[4:].mean(axis=0)).max()) < 1e-5
    True
    """
    level = check_contamination(contamination, allow_auto=True)
    stacked = _stacked(updates)
    if len(stacked) == 0:
        raise ValueError("there are no updates to aggregate.")
    if _is_tensor(stacked):
        return _of_tensor(stacked, level)
    if stacked.dtype.kind not in "fc":
        stacked = stacked.astype(np.float64)
    shape = stacked.shape[1:]
    found = robust_mean(stacked.reshape(len(stacked), -1), level).location
    return found.astype(stacked.dtype).reshape(shape)


def _stacked(updates: Any) -> Any:
    """One array or tensor with a row for every sender."""
    if _is_tensor(updates) or isinstance(updates, np.ndarray):
        return updates
    listed = list(updates)
    if listed and _is_tensor(listed[0]):
        # Its own package stacks it, so that nothing here has to import that.
        empty = listed[0].new_empty((len(listed), *listed[0].shape))
        for place, update in enumerate(listed):
            empty[place] = update
        return empty
    return np.asarray(listed)


def _is_tensor(values: Any) -> bool:
    return any(base.__module__.split(".")[0] == "torch" for base in type(values).__mro__)


def _of_tensor(tensor: Any, level: float | str) -> Any:
    """The mean of the rows of a tensor, computed where it lives."""
    rows = tensor.detach().reshape(len(tensor), -1)
    shape = (int(rows.shape[0]), int(rows.shape[1]))
    if _readable(rows) or not few_and_long(shape) or level == 0:
        location = robust_mean(rows.cpu().numpy(), level).location
        return rows.new_tensor(location).reshape(tensor.shape[1:])
    finite = np.asarray(rows.isfinite().all(dim=1).cpu().numpy())
    if not finite.all():
        raise ValueError(
            f"{int((~finite).sum())} updates hold NaN or infinite entries (first: update {int(np.argmin(finite))}). "
            "Leave them out."
        )
    found = filter_by_products(lambda point: _products(rows, point), level, finite)
    share = rows.new_tensor(found.weights / found.weights.sum())
    return (share @ rows).reshape(tensor.shape[1:])


def _readable(rows: Any) -> bool:
    """Whether NumPy reads the tensor where it is, as it is: its own products are faster than slices in double precision."""
    device = getattr(rows, "device", None)
    return getattr(device, "type", "") == "cpu" and str(rows.dtype) in ("torch.float32", "torch.float64")


def _products(rows: Any, point: int) -> Array:
    """Inner products about a row, in double precision, a slice of columns at a time."""
    count, length = rows.shape
    step, total = max(1, NUMBERS_AT_A_TIME // count), np.zeros((count, count))
    for low in range(0, length, step):
        part = rows[:, low : low + step].double()
        part = part - part[point]
        total += (part @ part.T).cpu().numpy()
    return total
