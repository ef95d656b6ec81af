"""Rows of a parquet file.

Covariates are one list column ``A`` (each list one row, all of the same length), or one column per feature named ``a0``, ``a1``
and so on. Parquet has no complex numbers: complex covariates are two list columns, ``A_real`` and ``A_imag``. List columns read
several times faster than many single ones.

Rows of a parquet file can only be read in order, so a *cursor* walks through the file batch by batch. A sweep moves one cursor
from the first row to the last (one for each member of a pair); nothing larger than a batch is ever decoded, however large the row
groups are.

A page of a few bytes can stand for billions of numbers, all alike, and one row of a list column may be made of all of them. The
footer of the file says how many numbers a column has; the headers of the pages say it again, and the library believes the pages.
So the two are compared before anything is unpacked, and a page may not be longer than its numbers are.

Headers are read in Thrift's compact protocol, of which only what they use is known here.
"""

from __future__ import annotations

import os
import re
from threading import Lock
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from robustphase.rows.io.limits import (
    MOST_BYTES_AT_ONCE,
    DataError,
    MissingNameError,
    check_matrix,
    check_room,
    explained,
    listed,
    require,
    shortened,
    working_dtype,
)
from robustphase.rows.io.prefetch import ReadAheadRows
from robustphase.rows.source import Array

#: A number takes eight bytes at most, and each of its two levels two; a page may have as much again and this to spare.
MOST_PER_NUMBER, SLACK = 24, 1 << 20
#: Longest header of a page: beside a few numbers it holds the least and the greatest entry.
LONGEST_HEADER = 1 << 16
#: Fields of a page header: sizes, and the three kinds of pages that hold numbers, whose first field counts them.
UNPACKED, PACKED, DATA, DICTIONARY, DATA_2 = 2, 3, 5, 7, 8
#: Types of the compact protocol.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
#: Structures in structures, of which a page header has two.
DEEPEST = 8


class Page(NamedTuple):
    """One page: bytes of its header, bytes packed and unpacked, numbers, and whether they are entries of the column."""

    header: int
    packed: int
    unpacked: int
    numbers: int
    data: bool


def check_column(file: BinaryIO, chunk: Any, where: str) -> None:
    """Refuse a column whose pages are not what the footer of the file declares of it (``chunk``) in one row group."""
    starts = [chunk.data_page_offset, chunk.dictionary_page_offset if chunk.has_dictionary_page else None]
    position = min(start for start in starts if start)
    end, size = position + chunk.total_compressed_size, os.fstat(file.fileno()).st_size
    if not 0 <= position <= end <= size:
        raise DataError(f"{where} lies outside of the file; it is damaged.")
    numbers = 0
    while position < end and numbers < chunk.num_values:
        file.seek(position)
        try:
            page = read_page(file.read(min(LONGEST_HEADER, end - position)))
        except (IndexError, ValueError) as error:
            raise DataError(f"{where} has a damaged page at byte {position}; copy the file again.") from error
        if page.unpacked > MOST_PER_NUMBER * page.numbers + SLACK or page.packed < 0:
            raise DataError(
                f"{where} has a page that is longer than its numbers at byte {position}; it is damaged or made to harm."
            )
        check_room(2 * page.unpacked, f"one page of {where}")
        numbers += page.numbers if page.data else 0
        position += page.header + page.packed
    if numbers != chunk.num_values or position > end:
        raise DataError(
            f"{where} has pages of {numbers} numbers where the file declares {chunk.num_values}; it is damaged."
        )


def read_page(data: bytes) -> Page:
    """A page from the bytes of its header."""
    fields, length = _structure(data, 0, 0)
    kind = next((kind for kind in (DATA, DICTIONARY, DATA_2) if kind in fields), None)
    counted = fields[kind].get(1, 0) if kind is not None else 0
    unpacked, packed = fields.get(UNPACKED, -1), fields.get(PACKED, -1)
    if min(unpacked, packed, counted) < 0:
        raise ValueError("a negative size")
    return Page(length, packed, unpacked, counted, kind in (DATA, DATA_2))


def _structure(data: bytes, position: int, depth: int) -> tuple[dict[int, Any], int]:
    """The fields of a structure by their numbers, and where it ends."""
    if depth > DEEPEST:
        raise ValueError("too deep")
    fields: dict[int, Any] = {}
    number = 0
    while (head := data[position]) != 0:
        position += 1
        if head >> 4:
            number += head >> 4
        else:
            number, position = _signed(data, position)
        fields[number], position = _value(data, position, head & 15, depth)
    return fields, position + 1


def _value(data: bytes, position: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (TRUE, FALSE):
        return kind == TRUE, position
    if kind == BYTE:
        return data[position], position + 1
    if kind in (I16, I32, I64):
        return _signed(data, position)
    if kind == DOUBLE:
        return None, position + 8
    if kind == BINARY:
        length, position = _unsigned(data, position)
        return None, position + length
    if kind in (LIST, SET):
        head = data[position]
        count, position = (head >> 4, position + 1) if head >> 4 != 15 else _unsigned(data, position + 1)
        for _ in range(count):
            # In a list, truth values take a byte each.
            _, position = _value(data, position, BYTE if head & 15 in (TRUE, FALSE) else head & 15, depth + 1)
        return None, position
    if kind == STRUCT:
        return _structure(data, position, depth + 1)
    raise ValueError(f"a value of kind {kind}")


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position
        if shift > 63:
            raise ValueError("a number that does not end")


def _signed(data: bytes, position: int) -> tuple[int, int]:
    value, position = _unsigned(data, position)
    return (value >> 1) ^ -(value & 1), position


MAGIC = b"PAR1"
#: Bytes that each column of a file reads ahead, instead of all that it has in a row group.
BUFFER = 1 << 16
#: Cursors kept: enough for a pass over pairs, and for a second pass at the same time.
MOST_CURSORS = 4
#: Whoever computes with rows keeps at least this many vectors of their length (a start keeps six hundred). A row is decoded
#: whole, and a file of a thousand bytes can declare one of a billion numbers.
VECTORS = 100


class Layout(NamedTuple):
    """Which columns hold the covariates."""

    columns: tuple[str, ...]  # Their names
    lists: bool  # Whether each is a list column; otherwise each is one feature


def open_parquet(path: str | os.PathLike[str]) -> Any:
    """A parquet file that reads column pieces as they are needed, and compares checksums of pages that have them."""
    parquet = require("pyarrow.parquet", extra="parquet", purpose="reading parquet files")
    with explained(path, "parquet"):
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True)


def find_layout(file: Any, name: str, path: str | os.PathLike[str]) -> Layout:
    """The columns that hold covariates called ``name``, or an error that lists those present."""
    present = list(file.schema_arrow.names)
    if len(set(present)) != len(present):
        raise DataError(f"'{os.fspath(path)}' has several columns of the same name.")
    if name in present:
        return Layout((name,), lists=True)
    if f"{name}_real" in present and f"{name}_imag" in present:
        return Layout((f"{name}_real", f"{name}_imag"), lists=True)
    prefix = name.lower() if name == "A" else name
    numbered = {column: re.fullmatch(rf"{re.escape(prefix)}(\d{{1,9}})", column) for column in present}
    indices: dict[int, str] = {}
    for column, match in numbered.items():
        if match:
            other = indices.setdefault(int(match[1]), column)
            if other != column:
                raise DataError(
                    f"'{os.fspath(path)}' has the columns {other} and {column}, which both mean feature "
                    f"{int(match[1])}; remove one."
                )
    if indices and sorted(indices) == list(range(len(indices))):
        return Layout(tuple(indices[index] for index in range(len(indices))), lists=False)
    raise DataError(
        f"'{os.fspath(path)}' has no list column {name}, no pair {name}_real and {name}_imag, and no columns {prefix}0, "
        f"{prefix}1, ... without gaps; its columns: {listed(present, 'none')}."
    )


def read_parquet_column(file: Any, name: str, path: str | os.PathLike[str]) -> Array:
    """One column of numbers, such as the responses, in memory."""
    where = f"'{os.fspath(path)}' (column {name})"
    if name not in file.schema_arrow.names:
        raise MissingNameError(
            f"'{os.fspath(path)}' has no column {name}", "its columns:", list(file.schema_arrow.names)
        )
    with explained(path, "parquet"):
        _number_type(file.schema_arrow.field(name).type, where)
        check_room(2 * 8 * file.metadata.num_rows, where)
        check_pages(file, (name,), path)
        column = file.read(columns=[name], use_threads=False).column(0)
        if column.null_count:
            raise DataError(f"{where} has {column.null_count} empty entries; drop those rows or fill them in.")
        return np.asarray(column.to_numpy())


def check_pages(file: Any, columns: tuple[str, ...], path: str | os.PathLike[str]) -> dict[str, list[int]]:
    """How many numbers each of some columns has in every row group, after comparing the pages with that."""
    metadata, counts = file.metadata, {column: list[int]() for column in columns}
    with open(path, "rb") as pages:
        for group in range(metadata.num_row_groups):
            described = metadata.row_group(group)
            for index in range(described.num_columns):
                chunk = described.column(index)
                # A list column is called "A.list.element" or the like.
                name = next((name for name in columns if f"{chunk.path_in_schema}.".startswith(f"{name}.")), None)
                if name is not None:
                    check_column(pages, chunk, f"'{os.fspath(path)}' (column {name}, row group {group})")
                    counts[name].append(chunk.num_values)
    return counts


def _number_type(kind: Any, where: str) -> np.dtype[Any]:
    """The NumPy type of an Arrow type, if that is a plain number."""
    types = require("pyarrow", extra="parquet", purpose="reading parquet files").types
    if not (types.is_floating(kind) or types.is_integer(kind)):
        raise DataError(
            f"{where} holds entries of type {shortened(kind)}; plain integers or floating-point numbers are needed."
        )
    dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    return dtype


class ParquetRows(ReadAheadRows):
    """The rows of a parquet file, whose covariates have this name; see the notes of this module."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "A",
        *,
        block_rows: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(block_rows=block_rows, threads=threads)
        self.where = f"'{os.fspath(path)}' (column {name})"
        self._file = open_parquet(path)
        self._lock, self._cursors = Lock(), list[_Cursor]()
        with explained(path, "parquet"):
            self._layout = find_layout(self._file, name, path)
            metadata = self._file.metadata
            sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
            if min(sizes, default=0) < 0 or sum(sizes) != metadata.num_rows:
                raise DataError(f"'{os.fspath(path)}' is damaged: its row groups do not add up to its number of rows.")
            self._first_rows = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
            stored = self._stored_type()
            self._check_counts(check_pages(self._file, self._layout.columns, path), sizes, stored.itemsize)
            self.shape = check_matrix((sum(sizes), self._width() if sum(sizes) else 0), self.where)
            self.dtype = working_dtype(stored, self.where)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._cursors.clear()
            self._file.close(force=True)

    def _stored_type(self) -> np.dtype[Any]:
        types = require("pyarrow", extra="parquet", purpose="reading parquet files").types
        found = []
        for column in self._layout.columns:
            kind = self._file.schema_arrow.field(column).type
            if self._layout.lists:
                if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
                    raise DataError(f"{self.where} must be a column of lists of numbers, one list per row, got {kind}.")
                kind = kind.value_type
            found.append(_number_type(kind, self.where))
        stored = np.result_type(*found)
        return np.result_type(stored, np.complex64) if self._layout.lists and len(found) == 2 else stored

    def _check_counts(self, counts: dict[str, list[int]], sizes: list[int], itemsize: int) -> None:
        """Refuse columns of other lengths than the file; and long lists of which the first row could be nearly all."""
        for name, found in counts.items():
            if not self._layout.lists and found != sizes:
                raise DataError(f"{self.where} is damaged: the column {name} has not one number for every row.")
            for numbers, rows in zip(found, sizes, strict=True):
                # Short ones are read, so that the first row of another length can be named.
                if rows and numbers % rows and numbers * itemsize > MOST_BYTES_AT_ONCE:
                    raise DataError(
                        f"{self.where} has {numbers} numbers in {rows} rows; all rows need the same length."
                    )
                if self._layout.lists:
                    width = numbers // max(1, rows)
                    check_room(VECTORS * width * itemsize, f"a fit with {width} unknowns, as wide as {self.where},")

    def _width(self) -> int:
        if not self._layout.lists:
            return len(self._layout.columns)
        first = next(self._file.iter_batches(1, columns=list(self._layout.columns), use_threads=False)).column(0)
        lengths = first.value_lengths().to_numpy(zero_copy_only=False)
        if first.null_count or lengths.size != 1:
            raise DataError(f"{self.where} has an empty entry in row 0; drop those rows or fill them in.")
        return int(lengths[0])

    def _fetch(self, start: int, stop: int, out: Array) -> None:
        with self._lock:
            cursor = self._cursor_at(start)
            filled = 0
            while filled < stop - start:
                batch = cursor.take(stop - start - filled)
                self._unpack(batch, start + filled, out[filled : filled + batch.num_rows])
                filled += batch.num_rows
            self._cursors = [cursor, *self._cursors][:MOST_CURSORS]

    def _cursor_at(self, row: int) -> _Cursor:
        """A cursor that stands at a row: one that has come there, or a new one."""
        for index, cursor in enumerate(self._cursors):
            if cursor.position == row:
                return self._cursors.pop(index)
        group = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        cursor = _Cursor(self._file, self._layout.columns, group, self.piece_rows(), self.where)
        cursor.skip(row - int(self._first_rows[group]))
        cursor.position = row
        return cursor

    def _unpack(self, batch: Any, first_row: int, out: Array) -> None:
        # By name: the columns of a batch come in the order of the file.
        columns = [batch.column(name) for name in self._layout.columns]
        if any(column.null_count for column in columns):
            raise DataError(self._empty_message(first_row))
        if not self._layout.lists:
            for index, column in enumerate(columns):
                out[:, index] = column.to_numpy()
        elif len(columns) == 2:
            out.real, out.imag = (self._matrix(column, first_row) for column in columns)
        else:
            np.copyto(out, self._matrix(columns[0], first_row), casting="unsafe")

    def _matrix(self, column: Any, first_row: int) -> Array:
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if (lengths != self.shape[1]).any():
            row = int(np.flatnonzero(lengths != self.shape[1])[0])
            raise DataError(
                f"{self.where} has a list of {int(lengths[row])} numbers in row {first_row + row}, and one of {self.shape[1]} "
                "in row 0; all rows need the same length."
            )
        values = column.flatten()
        if values.null_count:
            raise DataError(self._empty_message(first_row))
        matrix: Array = values.to_numpy().reshape(len(column), self.shape[1])
        return matrix

    def _empty_message(self, first_row: int) -> str:
        return f"{self.where} has empty entries at or after row {first_row}; drop those rows or fill them in."


class _Cursor:
    """A place in a parquet file from which rows are taken in order."""

    def __init__(self, file: Any, columns: tuple[str, ...], group: int, batch_rows: int, where: str) -> None:
        groups = range(group, file.metadata.num_row_groups)
        self._batches = file.iter_batches(batch_rows, row_groups=groups, columns=list(columns), use_threads=False)
        self._rest: Any = None
        self._where = where
        self.position = -1

    def take(self, rows: int) -> Any:
        """At least one and at most ``rows`` rows."""
        while self._rest is None or self._rest.num_rows == 0:
            self._rest = next(self._batches, None)
            if self._rest is None:
                raise DataError(f"{self._where} ends early: there are fewer rows than the file declares.")
        batch, self._rest = self._rest.slice(0, rows), self._rest.slice(rows)
        self.position += batch.num_rows
        return batch

    def skip(self, rows: int) -> None:
        """Pass over some rows."""
        while rows > 0:
            rows -= int(self.take(rows).num_rows)
