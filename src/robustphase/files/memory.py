"""How much memory a fit takes, and how much room its checkpoint, before it takes them."""

from __future__ import annotations

from typing import Any

from robustphase.rows import as_source
from robustphase.rows.blocked import BLOCK_BYTES, MAX_BLOCK_ROWS
from robustphase.rows.io.prefetch import PIECES_AHEAD, ReadAheadRows
from robustphase.rows.passes import NUMBERS
from robustphase.rows.threads import allowed_threads

#: Candidates that the default engine races together, each with a residual per sample in single precision.
CANDIDATES = 16
#: Arrays of that shape, for the rows of a slice of a block, while a step is computed.
TEMPORARIES = 7
#: Further numbers per sample: responses, covariate weights, densities, ranks, projections, doubts.
OTHERS = 28
#: Numbers per unknown: the bases that the start builds.
PER_UNKNOWN = 600

#: Numbers per sample and per unknown that all passes of the default fit return together, and with them a checkpoint keeps.
KEPT_PER_SAMPLE, KEPT_PER_UNKNOWN = 90, 2500


def memory_needed(covariates: Any) -> int:
    """Bytes that the default fit will take beyond the data, to within about a quarter (and rather too many).

    What grows with the data are the numbers per sample, since rows pass through a few buffers and are forgotten:

    ``m · (4 k + 8 · 28 + 4 p)``, with k = 16 candidates and p = 8 bytes per projection (16 if complex), so a third of a kB
    per sample; besides ``8 · 600 n`` for the start, and ``(t + 2)`` buffers of one piece plus the temporaries of a block,
    in single precision, for each of t threads.

    Parameters
    ----------
    covariates : RowSource or array-like of shape (m, n), or path
        ``A``. Only its shape and type matter, so the estimate costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> 25 < memory_needed(np.zeros((100_000, 20))) / 10**6 < 75
    True
    """
    source = as_source(covariates)
    m, n = source.shape
    projection = 16 if source.dtype.kind == "c" else 8
    per_sample = 4 * CANDIDATES + 8 * OTHERS + 4 * projection
    threads = (source.threads if isinstance(source, ReadAheadRows) else None) or allowed_threads()
    rows = min(m, MAX_BLOCK_ROWS, BLOCK_BYTES // (n * source.dtype.itemsize) + 1)
    together = min(rows, NUMBERS // CANDIDATES)
    buffers = threads * (rows * n * projection + TEMPORARIES * together * CANDIDATES * projection // 2)
    if isinstance(source, ReadAheadRows):
        piece = min(source.piece_rows(), m) * n * source.dtype.itemsize
        buffers += (threads + PIECES_AHEAD) * piece
    return int(m * per_sample + 8 * PER_UNKNOWN * n * (projection // 8) + buffers)


def checkpoint_needed(covariates: Any) -> int:
    """Bytes on the disk that the checkpoint of a default fit grows to (see :func:`~robustphase.files.checkpointed`).

    About 0.7 kB per real and 1.4 kB per complex sample, whatever the number of unknowns, and 20 or 40 kB per unknown. Whitening
    and other ways to fit may take several times as much.

    Parameters
    ----------
    covariates : RowSource or array-like of shape (m, n), or path
        ``A``. Only its shape and type matter.

    Examples
    --------
    >>> import numpy as np
    >>> checkpoint_needed(np.zeros((100_000, 20))) // 10**6
    72
    """
    source = as_source(covariates)
    m, n = source.shape
    number = 16 if source.dtype.kind == "c" else 8
    return number * (KEPT_PER_SAMPLE * m + KEPT_PER_UNKNOWN * n)
