"""Samples in files: covariates ``A`` and responses ``y`` together, on disk and back.

* :func:`open_samples` opens a file for a fit. The covariates are a row source that is read block by block, so they may be
  larger than memory; the responses, eight bytes per sample, are loaded.
* :func:`save_samples` writes one, whole or not at all, also from a source that is larger than memory.
* :func:`read_values` reads what belongs to every sample besides, such as a dark frame or limits of the detector.
* :func:`fingerprint` tells whether two data sets are the same, whatever kind of file they are in.
* :func:`memory_needed` says how much memory a fit will take, before it takes it.
* :func:`checkpointed` keeps the passes of a long fit in a folder, so that after a kill it goes on where it was;
  :func:`checkpoint_needed` says how large the folder gets.

What cannot be used is a :class:`DataError`: damaged, cut off or lying files, Python objects (nothing is ever unpickled),
archives that unpack to more than memory holds, arrays that do not belong together.
"""

from robustphase.files.checkpoint import CheckpointError, checkpointed
from robustphase.files.fingerprint import fingerprint
from robustphase.files.memory import checkpoint_needed, memory_needed
from robustphase.files.opening import StoredSamples, open_samples
from robustphase.files.responses import read_values
from robustphase.files.saving import save_samples
from robustphase.rows.io.limits import DataError, available_memory

__all__ = [
    "CheckpointError",
    "DataError",
    "StoredSamples",
    "available_memory",
    "checkpoint_needed",
    "checkpointed",
    "fingerprint",
    "memory_needed",
    "open_samples",
    "read_values",
    "save_samples",
]
