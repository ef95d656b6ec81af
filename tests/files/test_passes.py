"""A pass in a file comes back as it was, or not at all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from robustphase.files import passes
from robustphase.files.passes import CHECKSUM, seal_pass
from robustphase.rows import Parts

RNG = np.random.default_rng(0)
COLUMNS = RNG.standard_normal((3, 4)).T
#: One array of every kind: number, columns together, a column that is also a row, three axes, single and complex, none.
PARTS = Parts(
    (np.array(2.5), COLUMNS, RNG.standard_normal((1, 5)).T, RNG.standard_normal((2, 3, 4)).transpose(1, 2, 0)),
    (np.arange(5, dtype=np.float32), RNG.standard_normal((5, 2)) + 1j, np.arange(5) > 2, np.empty((5, 0))),
)


LINK = bytes(range(32))


def write_pass(path, number, call, parts):
    passes.write_pass(path, seal_pass(number, call, parts, LINK))


def read_pass(path, number, link=LINK):
    found = passes.read_pass(path, number, link)
    return None if found is None else found[:2]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "000003.pass"
    write_pass(path, 3, "call", PARTS)
    return path


def test_arrays_come_back_with_their_type_shape_and_order_in_memory(case, tmp_path):
    for parts in [PARTS, Parts(), Parts(sums=(np.ones(2),)), Parts(rows=(np.ones((2, 2)),))]:
        with case(parts):
            write_pass(tmp_path / "x", 7, "the call", parts)
            found = read_pass(tmp_path / "x", 7)
            assert found is not None
            call, again = found
            assert call == "the call"
            for before, after in zip((*parts.sums, *parts.rows), (*again.sums, *again.rows), strict=True):
                assert_array_equal(after, before)
                assert after.dtype == before.dtype
                assert after.strides == before.strides
                assert after.flags.writeable
            assert (len(again.sums), len(again.rows)) == (len(parts.sums), len(parts.rows))


def test_an_array_with_gaps_loses_only_the_gaps(tmp_path):
    gaps = np.arange(24.0).reshape(4, 6)[::2, ::-3]
    write_pass(tmp_path / "x", 0, "", Parts((gaps,)))
    found = read_pass(tmp_path / "x", 0)
    assert found is not None
    assert_array_equal(found[1].sums[0], gaps)


def test_a_file_cut_off_anywhere_is_none(file):
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert read_pass(file, 3) is None, length


def test_a_flipped_bit_anywhere_makes_it_none(file):
    whole = file.read_bytes()
    for position in range(len(whole)):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ (1 << position % 8)]) + whole[position + 1 :])
        assert read_pass(file, 3) is None, position


def test_a_pass_that_was_sealed_for_another_place_is_none(file):
    assert read_pass(file, 3) is not None
    assert read_pass(file, 3, LINK[::-1]) is None
    assert read_pass(file, 3, b"") is None


def test_more_than_the_file_is_none(file):
    file.write_bytes(file.read_bytes() + b"\0")
    assert read_pass(file, 3) is None


def test_another_number_and_a_missing_file_are_none(file, tmp_path):
    assert read_pass(file, 4) is None
    assert read_pass(tmp_path / "000004.pass", 4) is None
    assert read_pass(tmp_path, 4) is None


def test_a_head_that_lies_is_none_and_takes_no_memory(case, tmp_path):
    for head in [
        {"format": 9, "pass": 3, "call": "", "sums": 0, "arrays": []},
        {"format": 2, "pass": 3, "call": "", "sums": 1, "arrays": [["<f8", [1 << 40], [0]]]},
        {"format": 2, "pass": 3, "call": "", "sums": 1, "arrays": [["<f8", [-1], [0]]]},
        {"format": 2, "pass": 3, "call": "", "sums": 1, "arrays": [["|O", [1], [0]]]},
        {"format": 2, "pass": 3, "call": "", "sums": 1, "arrays": [["nonsense", [1], [0]]]},
        {"format": 2, "pass": 3, "call": "", "sums": 1, "arrays": [["<f8", [1], [1]]]},
        {"format": 2, "pass": 3},
        [],
        None,
    ]:
        with case(head):
            (tmp_path / "x").write_bytes(json.dumps(head).encode() + b"\n" + 8 * b"\0" + CHECKSUM * b"\0")
            assert read_pass(tmp_path / "x", 3) is None
