"""The pages of a parquet column, from their headers: how many numbers they hold, and what they unpack to.

A page of a few bytes can stand for billions of numbers, all alike, and one row of a list column may be made of all of them.
The footer of the file says how many numbers a column has; the headers of the pages say it again, and the library believes the
pages. So the two are compared before anything is unpacked, and a page may not be longer than its numbers are.

Headers are read in Thrift's compact protocol, of which only what they use is known here.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, NamedTuple

from robustphase.rows.io.limits import DataError, check_room

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
    """Refuse a column whose pages are not what the footer of the file declares.

    Parameters
    ----------
    file : binary file
        The parquet file.
    chunk : pyarrow.parquet.ColumnChunkMetaData
        What the footer says about the column in one row group.
    where : str
        What to call the column in errors.
    """
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
