"""Where the data lives, and the only code that touches the covariates ``A``.

Every algorithm of the library is a sequence of *passes*: sweeps over row blocks small enough to stay in cache. A pass
takes a block ``B``, projects it (``S = B V``), turns the projections and the per-sample numbers of that block into
coefficients ``C``, and adds ``Bᴴ C`` to a running sum. The block is read from memory once, and nothing of the size of
``A`` is ever made.

Three ideas, one module each:

* a :class:`RowSource` knows how to sweep (``source``; ``memory`` is the in-memory form, others only read blocks);
* :func:`project`, :func:`adjoint`, :func:`sweep` and the two loss gradients are the passes over a source (``passes``);
* :class:`ScaledRows` is a cloud of points ``c_j a_j`` that exists only as a source and a vector of scales (``views``):
  every vector the paper averages is one, and robust means need nothing but its five passes.

``formats`` opens files (``npy``, ``npz``, ``hdf5``, ``zarr_arrays``, ``parquet``) as sources that read ahead (``readahead``).
``dask_arrays`` leaves the rows on the workers of a cluster (``cluster``, ``placement``, ``shards``) and sends them the kernels
(``parcels``). ``extremes`` finds rows too large to square; ``wrapped`` hides them, turns the rows, or changes unit or
origin.
``operators`` takes linear operators, whose rows nobody can look at. ``journal`` remembers the passes of a run, so that it can go
on after it was cut off.
"""

from robustphase.rows.dask_arrays import DaskRows
from robustphase.rows.errors import DataError
from robustphase.rows.extremes import extreme_rows, row_peaks
from robustphase.rows.formats import open_rows_at
from robustphase.rows.journal import JournalledRows
from robustphase.rows.memory import MemoryRows
from robustphase.rows.opening import as_source
from robustphase.rows.operators import OperatorRows
from robustphase.rows.passes import adjoint, paired_loss_gradient, project, rows_at, squared_loss_gradient, sweep
from robustphase.rows.source import Parts, RowSource
from robustphase.rows.views import ScaledRows
from robustphase.rows.wrapped import MaskedRows, RescaledRows, ShiftedRows, TransformedRows

__all__ = [
    "DaskRows",
    "DataError",
    "JournalledRows",
    "MaskedRows",
    "MemoryRows",
    "OperatorRows",
    "Parts",
    "RescaledRows",
    "RowSource",
    "ScaledRows",
    "ShiftedRows",
    "TransformedRows",
    "adjoint",
    "as_source",
    "extreme_rows",
    "open_rows_at",
    "paired_loss_gradient",
    "project",
    "row_peaks",
    "rows_at",
    "squared_loss_gradient",
    "sweep",
]
