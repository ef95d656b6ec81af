"""What the chunks of a file mean for reading rows in order."""

from __future__ import annotations

import warnings

from robustphase.rows.errors import DataError
from robustphase.rows.limits import MOST_BYTES_AT_ONCE, check_room, in_bytes

#: A chunk read this many times in every pass is worth a warning.
WASTEFUL = 4


def check_chunks(shape: tuple[int, int], itemsize: int, chunks: tuple[int, ...], where: str) -> int:
    """Rows per chunk, after refusing chunks beyond memory and warning of those that every pass decodes many times.

    Parameters
    ----------
    shape : tuple of int
        ``(m, n)``.
    itemsize : int
        Bytes of an entry.
    chunks : tuple of int
        Shape of a chunk.
    where : str
        What to call the array.
    """
    if len(chunks) != 2 or min(chunks) < 1:
        raise DataError(f"{where} declares chunks of the impossible shape {chunks}; the file is damaged.")
    rows, columns = int(chunks[0]), int(chunks[1])
    # Twice: a chunk as stored and as decoded. Chunks at the edge are stored in full, so their declared size counts.
    check_room(2 * rows * columns * itemsize, f"one chunk of {where}, {rows} x {columns}")
    in_stripe = min(rows, shape[0]) * shape[1] * itemsize
    if in_stripe > WASTEFUL * MOST_BYTES_AT_ONCE:
        warnings.warn(
            f"{where} has chunks of {rows} x {columns}: whole rows come only in stripes of {in_bytes(in_stripe)}, so that every "
            f"pass decodes each chunk about {in_stripe // MOST_BYTES_AT_ONCE} times. Rewrite it in chunks of whole rows, for "
            "example with robustphase.files.save_samples.",
            stacklevel=4,
        )
    return min(rows, shape[0])
