"""Rows of a Dask array.

With a client of ``dask.distributed`` the rows are held by its workers, and each pass is one task per worker (``cluster``).
Without one they are computed once, by whatever scheduler Dask is set to use, and held in this process: that is a convenience
for small data, not a way to larger data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robustphase.rows.dask.cluster import Cluster
from robustphase.rows.dask.partition import Beside, Shard, cuts_of, make_shard
from robustphase.rows.io.limits import DataError, check_matrix, check_room, require, working_dtype
from robustphase.rows.source import Array, Kernel, Parts, RowSource

PURPOSE = "fitting a Dask array"
WHERE = "the Dask array"


class DaskRows(RowSource):
    """The rows of a Dask array, where Dask keeps them.

    Nothing is computed before the first pass. Rows of an array that was persisted stay where they are, unless a pass pairs
    samples; rows of any other array are spread over the workers that are there at the first pass, and held by them until this
    source is closed or forgotten. Give the same source to several fits to bring the rows there only once.

    Parameters
    ----------
    array : dask.array.Array of shape (m, n)
        The rows. Chunks that split columns are joined.
    client : distributed.Client, optional
        The cluster. Default: the one on which the array was persisted, or the current one; if there is none, the rows are
        computed and held in this process.
    block_rows, threads : int, optional
        See :class:`~robustphase.rows.blocked.BlockedRows`. By default each worker uses as many threads as it was started with.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from robustphase.rows import DaskRows, project
    >>> rows = DaskRows(da.ones((1000, 3), chunks=(100, 3)))
    >>> project(rows, np.ones(3))[:2]
    array([3., 3.])
    """

    def __init__(
        self, array: Any, *, client: Any = None, block_rows: int | None = None, threads: int | None = None
    ) -> None:
        dask_array = require("dask.array", extra="dask", purpose=PURPOSE)
        if not isinstance(array, dask_array.Array):
            raise TypeError(f"DaskRows needs a dask.array.Array, got {type(array).__name__}.")
        if np.isnan(np.asarray(array.shape, float)).any():
            raise DataError(f"{WHERE} does not know its shape {array.shape}; call its compute_chunk_sizes() first.")
        self.shape = check_matrix(array.shape, WHERE)
        self.dtype = working_dtype(array.dtype, WHERE)
        self.array = array if array.numblocks[1] == 1 else array.rechunk({1: -1})
        self.block_rows, self.threads = block_rows, threads
        client = client if client is not None else _client_of(array)
        options = {"block_rows": block_rows, "threads": threads}
        self._cluster = None if client is None else Cluster(self.array, client, self.dtype, **options)
        self._here: Shard | None = None

    @property
    def on_workers(self) -> bool:
        """Whether the rows are held by the workers of a client, instead of this process."""
        return self._cluster is not None

    def beside(self, values: Any) -> Beside:
        """Numbers of a Dask array, one for every row, to be held by the workers beside their rows."""
        if not self.on_workers:
            raise ValueError("there is no Dask client, so no worker could hold anything beside its rows.")
        return Beside(values, self.array)

    def close(self) -> None:
        """Let the workers, or this process, forget the rows; the next pass would compute them again."""
        self._here = None
        if self._cluster is not None:
            self._cluster.close()

    def _take(self, indices: Array) -> Array:
        taken: Array = np.asarray(self.array[indices].compute())
        return taken.astype(self.dtype, copy=False)

    def _reduce(self, kernel: Kernel, per_row: Sequence[Array], pairing: int) -> Parts:
        if self._cluster is not None:
            return self._cluster.reduce(kernel, per_row, pairing)
        if self._here is None:
            self._here = self._computed()
        return self._here.reduce(kernel, per_row, pairing=pairing)

    def _computed(self) -> Shard:
        dask = require("dask", extra="dask", purpose=PURPOSE)
        check_room(self.array.nbytes, f"{WHERE}, computed in this process for want of a Dask client,")
        chunks = dask.compute(*self.array.to_delayed().ravel())
        cuts = cuts_of([0, *np.cumsum(self.array.chunks[0]).tolist()], 0, self.shape[0])
        return make_shard(
            [chunks[cut.chunk] for cut in cuts],
            cuts,
            self.shape[1],
            self.array.dtype,
            owned=True,
            threads=self.threads,
            block_rows=self.block_rows,
        )


def _client_of(array: Any) -> Any:
    """The client that holds an array, or the current one; None where there is none."""
    try:
        distributed = require("distributed", extra="dask", purpose=PURPOSE)
    except ImportError:
        return None
    for future in distributed.futures_of(array):
        return future.client
    try:
        return distributed.Client.current()
    except ValueError:
        return None
