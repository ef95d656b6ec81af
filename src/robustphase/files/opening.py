"""Open a file of samples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from robustphase.files.fingerprint import fingerprint
from robustphase.files.responses import TRUTH, Wanted, in_columns, read_notes, read_responses, read_truth, stored_bytes
from robustphase.formatting import in_bytes
from robustphase.rows import RowSource
from robustphase.rows.io.hdf5_probe import NOTES
from robustphase.rows.io.limits import DataError, MissingNameError, reason, shortened
from robustphase.rows.opening import COVARIATES, RESPONSES, kind_of, open_rows_at
from robustphase.rows.source import Array

KINDS = {
    "npy": ".npy",
    "npz": ".npz",
    "hdf5": "HDF5",
    "zarr": "zarr",
    "parquet": "parquet",
    "mat": "MATLAB",
    "matlab": "MATLAB 7.3",
    "text": "text",
    "tiff": "TIFF",
}
#: Kinds of files that hold a single array.
SINGLE = ("npy", "tiff")
#: What may have its samples in the last axis.
TRANSPOSE = (None, "covariates", "responses", "both")


class StoredSamples:
    """Samples in a file: a context manager that closes it at the end.

    Attributes
    ----------
    path : Path
        The file or folder.
    covariates : RowSource
        ``A``, read in blocks and never loaded whole where its kind allows, see :func:`~robustphase.rows.open_rows_at`.
    responses : ndarray of shape (m,), or (m, p) for p signals
        ``y``, as float64.
    pattern_shape : tuple of int
        Shape of the pattern that a row of ``A`` is: ``(n,)``, or ``(height, width)`` of a stack of patterns.
    frame_shape : tuple of int
        Shape of what was read of every sample: ``()`` for one number, ``(p,)``, or ``(height, width)`` of a frame.
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
        self.pattern_shape = covariates.pattern_shape or (n,)
        self.frame_shape: tuple[int, ...] = responses.shape[1:]
        several = f"{responses.shape[1]} signals, " if responses.ndim == 2 else ""
        self.description = (
            f"{m} samples, {n} unknowns, {several}{covariates.dtype.name}, {KINDS[kind]}, "
            f"{in_bytes(stored_bytes(path))} on disk"
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
    transpose: str | None = None,
) -> StoredSamples:
    """Open covariates and responses for a fit.

    Parameters
    ----------
    path : path
        An ``.npz``, ``.npy``, MATLAB (``.mat``), HDF5, parquet, text (``.csv``) or TIFF file, or a zarr folder; its first bytes
        tell which. Covariates are a matrix (samples x features), or a stack of patterns (samples x height x width).
    responses : path or array-like of shape (m,), optional
        Where the responses are, if not in the same file; needed for ``.npy`` and TIFF files, which hold a single array. One
        number per sample, or several for as many signals (samples x signals), or frames (samples x height x width).
    covariates_name, responses_name : str, optional
        Names of the two in the file. Defaults: "A" and "y". In parquet files "A" is a list column; or the pair of list columns
        "A_real" and "A_imag"; or the columns "a0", "a1" and so on. In a text file all columns but "y" are covariates.
    transpose : {"covariates", "responses", "both"}, optional
        What has the samples in its last axis and not in the first, such as a matrix with one sensing vector in every column, or
        ``frames(:, :, j)`` of MATLAB.

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
    if transpose not in TRANSPOSE:
        raise ValueError(f'transpose must be None, "covariates", "responses" or "both", got {transpose!r}.')
    if kind in SINGLE and responses is None:
        raise DataError(f"'{os.fspath(path)}' holds the covariates only; say where the responses are (responses=...).")
    turned = transpose in ("covariates", "both")
    with _naming("covariates_name", avoid=responses_name or RESPONSES):
        covariates = open_rows_at(path, covariates_name, transpose=turned, responses_name=responses_name)
    m, n = covariates.shape
    pattern = covariates.pattern_shape or (n,)
    wanted = Wanted(m, transpose in ("responses", "both"), pattern[0] if turned else pattern[-1], turned)
    try:
        if responses is None or isinstance(responses, (str, os.PathLike)):
            with _naming("responses_name", avoid=covariates_name or COVARIATES):
                y, frame = read_responses(
                    path if responses is None else responses, responses_name, wanted, alone=responses is not None
                )
        else:
            y, frame = _given(np.asarray(responses), wanted)
        samples = StoredSamples(Path(path), covariates, y, read_truth(path, n), read_notes(path), kind)
        samples.frame_shape = frame
        return samples
    except BaseException as error:  # Ctrl-C included: nobody gets the samples, so nobody else would close them.
        close = getattr(covariates, "close", None)
        if close is not None:
            close()
        if isinstance(error, MemoryError):
            raise DataError(f"'{os.fspath(path)}' needs more memory than there is: {reason(error)}.") from error
        raise


def _given(values: Array, wanted: Wanted) -> tuple[Array, tuple[int, ...]]:
    try:
        return in_columns(values, "the array", wanted)
    except DataError as error:
        raise DataError(f"the responses given have shape {values.shape} and type {values.dtype}: {error}") from error


@contextmanager
def _naming(option: str, *, avoid: str) -> Iterator[None]:
    """Say which option names an array that was not found, with the first that it could be."""
    try:
        yield
    except MissingNameError as error:
        others = [name for name in error.present if name not in (avoid, TRUTH, NOTES)]
        if not others:
            raise
        # Tables have their responses in the last column as a rule.
        likely = others[-1 if option == "responses_name" else 0]
        raise DataError(f'{error} Say which it is, for example {option}="{shortened(likely)}".') from error


__all__ = ["COVARIATES", "RESPONSES", "StoredSamples", "open_samples"]
