"""Open a file of samples."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from robustphase.files.fingerprint import fingerprint
from robustphase.files.responses import RESPONSES, read_notes, read_responses, read_truth, stored_bytes
from robustphase.formatting import in_bytes
from robustphase.rows import RowSource
from robustphase.rows.io.limits import DataError, reason
from robustphase.rows.opening import COVARIATES, kind_of, open_rows_at
from robustphase.rows.source import Array

KINDS = {"npy": ".npy", "npz": ".npz", "hdf5": "HDF5", "zarr": "zarr", "parquet": "parquet"}


class StoredSamples:
    """Samples in a file: a context manager that closes it at the end.

    Attributes
    ----------
    path : Path
        The file or folder.
    covariates : RowSource
        ``A``, read in blocks and never loaded whole (except from compressed ``.npz`` archives).
    responses : ndarray of shape (m,)
        ``y``, as float64.
    truth : ndarray of shape (n,) or None
        The true signal, where the file has one.
    metadata : dict
        The notes that were saved with the samples.
    description : str
        Size, type and kind, for a person.
    """

    def __init__(
        self,
        path: Path,
        covariates: RowSource,
        responses: Array,
        truth: Array | None,
        metadata: dict[str, Any],
        kind: str,
    ) -> None:
        self.path, self.covariates, self.responses = path, covariates, responses
        self.truth, self.metadata = truth, metadata
        m, n = covariates.shape
        self.description = (
            f"{m} samples, {n} unknowns, {covariates.dtype.name}, {KINDS[kind]}, {in_bytes(stored_bytes(path))} on disk"
        )

    @cached_property
    def fingerprint(self) -> str:
        """The content as 64 hexadecimal digits; see :func:`robustphase.files.fingerprint`."""
        return fingerprint(self.covariates, self.responses)

    def close(self) -> None:
        """Close the file; the covariates cannot be read any more."""
        close = getattr(self.covariates, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> StoredSamples:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"StoredSamples('{self.path}': {self.description})"


def open_samples(
    path: str | os.PathLike[str],
    responses: Any = None,
    *,
    covariates_name: str | None = None,
    responses_name: str | None = None,
) -> StoredSamples:
    """Open covariates and responses for a fit.

    Parameters
    ----------
    path : path
        An ``.npz``, ``.npy``, HDF5 or parquet file, or a zarr folder; its first bytes tell which.
    responses : path or array-like of shape (m,), optional
        Where the responses are, if not in the same file; needed for ``.npy`` files, which hold a single array.
    covariates_name, responses_name : str, optional
        Names of the two in the file. Defaults: "A" and "y". In parquet files "A" is a list column; or the pair of list columns
        "A_real" and "A_imag"; or the columns "a0", "a1" and so on.

    Returns
    -------
    StoredSamples

    Raises
    ------
    DataError
        If the file cannot be used: the message says why and what to do.
    ImportError
        If the kind of file needs a package that is not installed: the message says how to install it.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from robustphase.files import save_samples
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "samples.npz")
    >>> save_samples(file, np.eye(3), np.ones(3))
    >>> with open_samples(file) as samples:
    ...     print(samples.covariates)
    FileRows(3 x 3, float64)
    >>> folder.cleanup()
    """
    kind = kind_of(path)
    if kind == "npy" and responses is None:
        raise DataError(f"'{os.fspath(path)}' holds the covariates only; say where the responses are (responses=...).")
    covariates = open_rows_at(path, covariates_name)
    m, n = covariates.shape
    try:
        if responses is None or isinstance(responses, (str, os.PathLike)):
            y = read_responses(path if responses is None else responses, responses_name, m)
        else:
            y = _given(responses, m)
        return StoredSamples(Path(path), covariates, y, read_truth(path, n), read_notes(path), kind)
    except BaseException as error:
        close = getattr(covariates, "close", None)
        if close is not None:
            close()
        if isinstance(error, MemoryError):
            raise DataError(f"'{os.fspath(path)}' needs more memory than there is: {reason(error)}.") from error
        raise


def _given(responses: Any, count: int) -> Array:
    values = np.asarray(responses)
    if values.dtype.kind not in "fiub" or values.shape not in ((count,), (count, 1)):
        raise DataError(
            f"the responses given have shape {values.shape} and type {values.dtype}; {count} real numbers are needed."
        )
    return values.reshape(-1).astype(np.float64)


__all__ = ["COVARIATES", "RESPONSES", "StoredSamples", "open_samples"]
