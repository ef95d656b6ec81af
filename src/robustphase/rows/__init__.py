"""Where the data lives, and the only code that touches the covariates ``A``.

Every algorithm of the library is a sequence of *passes*: sweeps over row blocks small enough to stay in cache. A pass
takes a block ``B``, projects it (``S = B V``), turns the projections and the per-sample numbers of that block into
coefficients ``C``, and adds ``Bᴴ C`` to a running sum. The block is read from memory once, and nothing of the size of
``A`` is ever made.

Three ideas, one module each:

* a :class:`RowSource` knows how to sweep (``source``; ``blocked`` sweeps whatever can be read in any range of rows);
* :func:`project`, :func:`adjoint`, :func:`sweep` and the two loss gradients are the passes over a source (``passes``), made of
  two products of a block (``products``);
* :class:`ScaledRows` is a cloud of points ``c_j a_j`` that exists only as a source and a vector of scales (``views``):
  every vector the paper averages is one, and robust means need nothing but its five passes.

``opening`` makes a source of what the user has: arrays, linear operators, whose rows nobody can look at (``operators``),
files that are read ahead of the computation (``io``), and arrays on the workers of a cluster (``dask``). ``wrapped`` hides
rows, turns them, or changes unit or origin. ``replay`` remembers the passes of a run, so that it can go on after it was cut
off.
"""

from robustphase.rows.blocked import MemoryRows
from robustphase.rows.dask.source import DaskRows
from robustphase.rows.io.limits import DataError
from robustphase.rows.opening import as_source, open_rows_at
from robustphase.rows.operators import OperatorRows
from robustphase.rows.passes import (
    adjoint,
    extreme_rows,
    look_at_rows,
    paired_loss_gradient,
    project,
    row_peaks,
    rows_at,
    squared_loss_gradient,
    sweep,
)
from robustphase.rows.replay import ReplayedRows
from robustphase.rows.source import Parts, RowSource
from robustphase.rows.views import ScaledRows
from robustphase.rows.wrapped import MaskedRows, RealRows, RescaledRows, ShiftedRows, StretchedRows, TransformedRows

__all__ = [
    "DaskRows",
    "DataError",
    "MaskedRows",
    "MemoryRows",
    "OperatorRows",
    "Parts",
    "RealRows",
    "ReplayedRows",
    "RescaledRows",
    "RowSource",
    "ScaledRows",
    "ShiftedRows",
    "StretchedRows",
    "TransformedRows",
    "adjoint",
    "as_source",
    "extreme_rows",
    "look_at_rows",
    "open_rows_at",
    "paired_loss_gradient",
    "project",
    "row_peaks",
    "rows_at",
    "squared_loss_gradient",
    "sweep",
]
