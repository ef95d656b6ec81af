"""A name for a data set, made of its content."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from robustphase.rows import Parts, ReplayedRows, RowSource, as_source
from robustphase.rows.blocked import BlockedRows
from robustphase.rows.source import Array

#: Bytes of covariates that are read at a time.
PART_BYTES = 1 << 20
#: Bytes of the digest of one row.
ROW_DIGEST = 16


def fingerprint(covariates: Any, responses: Any) -> str:
    """A SHA-256 sum over covariates and responses, as 64 hexadecimal digits.

    It covers, in this order: the line ``robustphase samples 1 <m> <n> <dtype>``; all responses as little-endian float64; and
    all covariates, row by row, in the type of the source, little-endian. So it does not depend on the kind of file the data is
    in. It takes about as long as one pass over the data.

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
    stored = source.dtype.newbyteorder("<")
    digest = hashlib.sha256(f"robustphase samples 1 {m} {n} {source.dtype.name}\n".encode("ascii"))
    digest.update(np.ascontiguousarray(responses, "<f8").data)
    step = max(1, PART_BYTES // (n * source.dtype.itemsize))

    def read(start: int) -> Array:
        return np.ascontiguousarray(source.read(start, min(start + step, m)), stored)

    if m <= step:
        digest.update(read(0).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()
    with ThreadPoolExecutor(1) as reader:
        # One part is read while the one before it is added.
        coming = reader.submit(read, 0)
        for start in range(0, m, step):
            rows = coming.result()
            if start + step < m:
                coming = reader.submit(read, start + step)
            digest.update(rows.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def digest_by_rows(source: RowSource, responses: Any) -> str:
    """Another sum over all of the data, by one pass: for rows elsewhere, which cannot be read in order."""
    m, n = source.shape
    digest = hashlib.sha256(f"robustphase rows 1 {m} {n} {source.dtype.name}\n".encode("ascii"))
    digest.update(np.ascontiguousarray(responses, "<f8").data)
    (rows,) = source.reduce(_digest_rows).rows
    digest.update(np.ascontiguousarray(rows, "<u8").view(np.uint8).data)
    return digest.hexdigest()


def _digest_rows(block: Array) -> Parts:
    """A digest of every row: how the rows are cut into blocks must not show."""
    rows = np.ascontiguousarray(block, block.dtype.newbyteorder("<")).view(np.uint8)
    digests = b"".join(hashlib.blake2b(row.data, digest_size=ROW_DIGEST).digest() for row in rows)
    return Parts(rows=(np.frombuffer(digests, "<u8").reshape(len(rows), -1).astype(np.uint64),))
