"""A name for a data set, made of its content."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from robustphase.rows import ReplayedRows, as_source
from robustphase.rows.blocked import BlockedRows

#: Up to this size all of the covariates enter the fingerprint; beyond it this many parts of this size.
WHOLE_BYTES, PARTS, PART_BYTES = 64 << 20, 64, 1 << 20


def fingerprint(covariates: Any, responses: Any) -> str:
    """A SHA-256 sum over covariates and responses, as 64 hexadecimal digits.

    It covers, in this order: the line ``robustphase samples 1 <m> <n> <dtype>``; all responses as little-endian float64; and
    the covariates, row by row, in the type of the source, little-endian. Of more than 64 MiB of covariates only 64 parts of
    about 1 MiB enter, evenly spaced from the first row to the last. So the fingerprint does not depend on the kind of file the
    data is in, and it is not proof against somebody who changes large data between the parts on purpose.

    Parameters
    ----------
    covariates : RowSource or array-like of shape (m, n), or path
        ``A``; of sources only those that can read any range of rows.
    responses : array-like of shape (m,)
        ``y``.

    Examples
    --------
    >>> import numpy as np
    >>> fingerprint(np.eye(3), np.ones(3))[:12]
    'ce41def15b6e'
    """
    source = as_source(covariates)
    if isinstance(source, ReplayedRows):
        source = source.source
    if not isinstance(source, BlockedRows):
        raise TypeError(f"a fingerprint needs rows that can be read in any order, got {type(source).__name__}.")
    m, n = source.shape
    digest = hashlib.sha256(f"robustphase samples 1 {m} {n} {source.dtype.name}\n".encode("ascii"))
    digest.update(np.ascontiguousarray(responses, "<f8").data)
    for start, stop in parts_read(m, n * source.dtype.itemsize):
        rows = np.ascontiguousarray(source.read(start, stop), source.dtype.newbyteorder("<"))
        digest.update(rows.view(np.uint8).data)
    return digest.hexdigest()


def parts_read(m: int, row_bytes: int) -> list[tuple[int, int]]:
    """Ranges of rows that enter the fingerprint."""
    rows = max(1, PART_BYTES // max(1, row_bytes))
    if m * row_bytes <= WHOLE_BYTES or m <= rows * PARTS:
        return [(start, min(start + rows, m)) for start in range(0, m, rows)]
    starts = np.linspace(0, m - rows, PARTS).astype(int)
    return [(int(start), int(start) + rows) for start in starts]
