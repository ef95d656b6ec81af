"""Places and shards: every row in one place, pairs together. Apart from the cluster, whose threads draw random numbers."""

from __future__ import annotations

import sys

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from robustphase.rows.dask.partition import Shard, cuts_of, in_place, make_shard, partition, put, take


@given(
    chunks=st.lists(st.integers(0, 40), min_size=1, max_size=20).filter(any),
    threads=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    pairing=st.integers(1, 3),
)
@example(chunks=[5], threads=[1, 3], pairing=2)  # A row left over, and a last worker with no other rows.
def test_places_hold_every_row_once_and_pairs_together(chunks, threads, pairing):
    edges = [0, *np.cumsum(chunks).tolist()]
    m = edges[-1]
    places = partition(edges, {f"w{i}": count for i, count in enumerate(threads)}, pairing)
    held = np.concatenate([np.arange(*bounds) for place in places for bounds in place.ranges])
    assert sorted(held) == list(range(m))
    assert len({place.worker for place in places}) == len(places)
    for place in places:
        local = take(np.arange(m), place.ranges)
        count = place.rows // pairing
        for member in range(pairing):
            assert_array_equal(local[member * count : (member + 1) * count], local[:count] + member * (m // pairing))
    out = np.empty(m // pairing)
    for place in places:
        put(out, place.swept(pairing), take(np.arange(m // pairing), place.swept(pairing)))
    assert_array_equal(out, np.arange(m // pairing))


def test_workers_get_rows_by_their_threads_and_whole_chunks_where_that_is_near():
    places = partition(range(0, 1001, 10), {"a": 1, "b": 3}, 1)
    assert [(place.worker, place.ranges) for place in places] == [("b", ((0, 750),)), ("a", ((750, 1000),))]
    assert partition([0, 330, 600, 1000], {"a": 1, "b": 1}, 1)[0].ranges == ((0, 500),)
    assert partition([0, 330, 510, 1000], {"a": 1, "b": 1}, 1)[0].ranges == ((0, 510),)


def test_a_part_of_a_chunk_does_not_keep_the_rest_in_memory():
    chunks = [np.arange(20.0).reshape(10, 2), np.arange(20.0, 40.0).reshape(10, 2)]
    cuts = cuts_of([0, 0, 10, 20], 7, 12)
    assert [tuple(cut) for cut in cuts] == [(1, 10, 7, 10), (2, 10, 0, 2)]
    shard = make_shard(chunks, cuts, 2, np.dtype(float), owned=False, threads=1, block_rows=None)
    assert_array_equal(shard.read(0, 5), np.arange(14.0, 24.0).reshape(5, 2))
    assert not any(np.shares_memory(piece, chunk) for piece in shard.pieces for chunk in chunks)


def test_rows_in_memory_stay_with_their_holders():
    places = in_place([0, 10, 10, 25, 30], ["b", "c", "a", "b"], {"a": 2, "b": 1})
    assert [(place.worker, place.threads, place.ranges) for place in places] == [
        ("b", 1, ((0, 10), (25, 30))),
        ("a", 2, ((10, 25),)),
    ]


@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=12), block=st.integers(1, 80), pairing=st.integers(1, 3))
def test_blocks_of_a_shard_cover_its_rows_in_order(sizes, block, pairing):
    A = np.arange(2.0 * sum(sizes)).reshape(-1, 2)
    shard = Shard(np.split(A, np.cumsum(sizes)[:-1]), A.dtype, block_rows=block)
    count = len(A) // pairing
    assert_array_equal(shard.read(0, len(A)), A)
    blocks = list(shard._blocks(0, count, pairing, block))
    assert [start for start, _ in blocks] == [0, *(stop for _, stop in blocks[:-1])][: len(blocks)]
    assert not blocks or blocks[-1][1] == count
    assert all(0 < stop - start <= block for start, stop in blocks)
    for start, stop in blocks:
        assert_array_equal(shard.read(start, stop), A[start:stop])


def test_large_chunks_are_not_copied_and_small_ones_are_joined_only_if_nobody_else_has_them(monkeypatch):
    pieces = [np.ones((10, 2)), np.ones((20, 2)), np.ones((600_000, 2))]
    edges = [0, *np.cumsum([len(piece) for piece in pieces]).tolist()]
    options = {"threads": 1, "block_rows": None}
    cuts = cuts_of(edges, 0, edges[-1])
    own = make_shard(pieces, cuts, 2, np.dtype(float), owned=True, **options)
    assert [len(piece) for piece in own.pieces] == [30, 600_000]
    assert own.pieces[1] is pieces[2]
    lent = make_shard(pieces, cuts, 2, np.dtype(float), owned=False, **options)
    assert all(piece is given for piece, given in zip(lent.pieces, pieces, strict=True))
    assert sys.getsizeof(own) > sum(piece.nbytes for piece in pieces)
    assert sys.getsizeof(lent) < 1000
    large = [block for block in own._blocks(0, own.shape[0], 1, 8192) if block[0] >= 30]
    assert all(np.shares_memory(own.read(*block), pieces[2]) for block in large)
