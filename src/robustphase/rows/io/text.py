"""Numbers in text files: a table with commas, semicolons, tabs or blanks between its columns (``.csv``, ``.tsv``, ``.txt``).

A first line with names is recognised by not being numbers. Then the column called as the responses are is the responses, and all
others are covariates, in their order. Complex numbers are written as Python or MATLAB writes them, ``1.5-0.2j`` or ``1.5-0.2i``.
The table is read into memory, line by line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np

from robustphase.rows.io.limits import DataError, MissingNameError, check_room, explained, reason
from robustphase.rows.source import Array

SUFFIXES = (".csv", ".tsv", ".txt", ".dat")
#: Longest line that is read: a hundred thousand complex numbers with all their digits.
LONGEST_LINE = 1 << 23
#: The imaginary unit as MATLAB writes it, behind a digit; the i of "inf" is none.
IMAGINARY = re.compile(r"(?<=[\d.])[iI](?![a-zA-Z])")
COMPLEX = re.compile(r"[\d.][ijIJ](?![a-zA-Z])")
#: Bytes of an entry of the table in memory beside those of its text: a complex number, twice.
ENTRY = 32


class Table(NamedTuple):
    """A table in memory."""

    values: Array  # (lines, columns): its numbers
    names: tuple[str, ...]  # Names of the columns, if the first line has them


def read_table(path: str | os.PathLike[str]) -> Table:
    """The numbers in a text file."""
    where = f"'{os.fspath(path)}'"
    with explained(path, "a table of numbers"), open(path, encoding="utf-8-sig", errors="strict", newline=None) as file:
        first = _first_line(file, where)
        separator = next((mark for mark in (",", ";", "\t") if mark in first), None)
        cells = [cell.strip().strip('"') for cell in first.split(separator)]
        # The shortest entry takes two bytes of text: a digit and what separates it from the next.
        check_room(ENTRY * (os.fstat(file.fileno()).st_size // 2 + 1), where)
        titled = any(_number(cell) is None for cell in cells)
        file.seek(0)
        lines = _lines(file, where)
        if titled:
            next(lines)
        text = list(lines)
        if not text:
            raise DataError(f"{where} has a line of names and no numbers below it.")
        complex_ = any(COMPLEX.search(line) for line in text)
        # The type needs a decimal point; a comma in its place would have separated columns.
        try:
            values = np.loadtxt(
                [IMAGINARY.sub("j", line) for line in text] if complex_ else text,
                dtype=np.complex128 if complex_ else np.float64,
                delimiter=separator,
                comments=None,
                ndmin=2,
                quotechar='"',
            )
        except ValueError as error:
            raise DataError(
                f"{where} is not a table of numbers: {reason(error)}. Every line needs the same number of entries, "
                "with a point and not a comma before the decimals, and nan where one is missing."
            ) from error
    names = tuple(cells) if titled else ()
    if names and len(names) != values.shape[1]:
        raise DataError(f"{where} has {len(names)} names and {values.shape[1]} columns; give every column one name.")
    if len(set(names)) != len(names):
        raise DataError(f"{where} has several columns of the same name.")
    return Table(values, names)


def text_covariates(path: str | os.PathLike[str], name: str | None, responses: str) -> Array:
    """The covariates in a table: all columns but the responses, or those whose names begin with ``name``."""
    values, names = read_table(path)
    if not names:
        return values
    wanted = [
        index
        for index, title in enumerate(names)
        if title != responses and (name is None or re.fullmatch(rf"{re.escape(name)}[_\[(]?\d+[\])]?", title))
    ]
    if not wanted:
        missing = f"'{os.fspath(path)}' has no columns named {name or 'A'}0, {name or 'A'}1, ..."
        raise MissingNameError(missing, "its columns:", list(names))
    return values[:, wanted]


def text_column(path: str | os.PathLike[str], name: str, *, alone: bool) -> Array:
    """One column of a table by its name; with ``alone`` a table without names is taken whole."""
    values, names = read_table(path)
    if name in names:
        column = values[:, names.index(name)]
        if values.dtype.kind == "c" and not column.imag.any():
            column = column.real
        return np.ascontiguousarray(column)
    if alone and (not names or name == "y"):
        return values
    if not names:
        raise DataError(
            f"'{os.fspath(path)}' has no line of names, so its columns cannot be told apart; write one, such as a0,a1,y, "
            'or keep the responses in a file of their own and pass responses="y.csv".'
        )
    raise MissingNameError(f"'{os.fspath(path)}' has no column named {name}", "its columns:", list(names))


def _number(cell: str) -> complex | None:
    try:
        return complex(IMAGINARY.sub("j", cell))
    except ValueError:
        return None


def _first_line(file: IO[str], where: str) -> str:
    for line in _lines(file, where):
        return line
    raise DataError(f"{where} is empty.")


def _lines(file: IO[str], where: str) -> Iterator[str]:
    """Lines that hold something."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE or "\0" in line:
            raise DataError(f"{where} is not a table of numbers: it has a line of more than 8 MB, or bytes of zero.")
        if line.strip():
            yield line
