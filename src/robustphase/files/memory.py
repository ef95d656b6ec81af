"""How much memory a fit takes, and how much room its checkpoint, before it takes them."""

from __future__ import annotations

from typing import Any

from robustphase.rows import as_source
from robustphase.rows.blocked import BLOCK_BYTES, MAX_BLOCK_ROWS
from robustphase.rows.readahead import PIECES_AHEAD, ReadAheadRows
from robustphase.rows.threads import allowed_threads

#: Candidates that the default engine races together, each with three numbers per sample: the projection, the residual and the
#: weight.
CANDIDATES = 16
#: Arrays of that shape, for the rows of one block, while a step is computed.
TEMPORARIES = 10
#: Further numbers per sample: responses, covariate weights, densities, ranks, scores; and a background, if that is fitted.
OTHERS = 20 + CANDIDATES
#: Numbers per unknown: the bases that the start builds.
PER_UNKNOWN = 600

#: Numbers per sample and per unknown that all passes of the default fit return together, and with them a checkpoint keeps.
KEPT_PER_SAMPLE, KEPT_PER_UNKNOWN = 125, 2000


def memory_needed(covariates: Any) -> int:
    """Bytes that the default fit will take beyond the data, to within about a quarter (and rather too many).

    What grows with the data are the numbers per sample, since rows pass through a few buffers and are forgotten:

    ``m · (k (p + 16) + 8 · 36)``, with k = 16 candidates and p = 8 bytes per projection (16 if complex), so 0.7 kB per real and
    0.8 kB per complex sample; besides ``8 · 600 n`` for the start, and ``(t + 2)`` buffers of one piece plus the
    temporaries of a block for each of t threads.

    Parameters
    ----------
    covariates : RowSource or array-like of shape (m, n), or path
        ``A``. Only its shape and type matter, so the estimate costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> 50 < memory_needed(np.zeros((100_000, 20))) / 10**6 < 150
    True
    """
    source = as_source(covariates)
    m, n = source.shape
    projection = 16 if source.dtype.kind == "c" else 8
    per_sample = CANDIDATES * (projection + 16) + 8 * OTHERS
    threads = (source.threads if isinstance(source, ReadAheadRows) else None) or allowed_threads()
    rows = min(m, MAX_BLOCK_ROWS, BLOCK_BYTES // (n * source.dtype.itemsize) + 1)
    buffers = threads * (2 * min(BLOCK_BYTES, m * n * 8) + TEMPORARIES * rows * CANDIDATES * projection)
    if isinstance(source, ReadAheadRows):
        piece = min(source.piece_rows(), m) * n * source.dtype.itemsize
        buffers += (threads + PIECES_AHEAD) * piece
    return int(m * per_sample + 8 * PER_UNKNOWN * n * (projection // 8) + buffers)


def checkpoint_needed(covariates: Any) -> int:
    """Bytes on the disk that the checkpoint of a default fit grows to (see :func:`~robustphase.files.checkpointed`).

    About 1 kB per real and 2 kB per complex sample, whatever the number of unknowns, and 16 or 32 kB per unknown. Whitening
    and other ways to fit may take several times as much.

    Parameters
    ----------
    covariates : RowSource or array-like of shape (m, n), or path
        ``A``. Only its shape and type matter.

    Examples
    --------
    >>> import numpy as np
    >>> checkpoint_needed(np.zeros((100_000, 20))) // 10**6
    100
    """
    source = as_source(covariates)
    m, n = source.shape
    number = 16 if source.dtype.kind == "c" else 8
    return number * (KEPT_PER_SAMPLE * m + KEPT_PER_UNKNOWN * n)
