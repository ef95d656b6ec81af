"""Files that once did harm, each made anew by a few lines: the corpus that the fuzzer tries first. All must be refused."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

M, N = 60, 5
RNG = np.random.default_rng(11)
A, Y = RNG.standard_normal((M, N)), RNG.random(M)
#: What the bombs unpack to: beyond the memory that a case may take.
BOMB = 1600 << 20


def _packed_zeros(bits: int) -> bytes:
    packer, piece = zlib.compressobj(1, zlib.DEFLATED, bits), bytes(1 << 22)
    return b"".join([*(packer.compress(piece) for _ in range(BOMB >> 22)), packer.flush()])


def _zarr(folder: Path, rows: np.ndarray = A, **options: object) -> Path:
    import zarr

    group = zarr.open_group(folder / "x.zarr", mode="w")
    group.create_array("A", shape=rows.shape, dtype=rows.dtype, **options)[:] = rows
    group.create_array("y", shape=(rows.shape[0],), dtype="f8")[:] = 1.0
    return folder / "x.zarr"


def _first_chunk(store: Path) -> Path:
    return min(file for file in (store / "A").rglob("*") if file.is_file() and file.name != "zarr.json")


def zarr_inner_chunk_missing(folder: Path) -> Path:
    rows = A.copy()
    rows[8:16] = 0.0
    return _zarr(folder, rows, chunks=(8, N), shards=(32, N))


def zarr_empty_shard(folder: Path) -> Path:
    store = _zarr(folder, chunks=(8, N), shards=(32, N))
    _first_chunk(store).write_bytes(b"")
    return store


def zarr_bomb(folder: Path) -> Path:
    from zarr.codecs import GzipCodec

    store = _zarr(folder, np.ones((100_000, 20)), chunks=(100_000, 20), compressors=[GzipCodec()])
    _first_chunk(store).write_bytes(_packed_zeros(31))
    return store


def zarr_pipe(folder: Path) -> Path:
    store = _zarr(folder, chunks=(M, N))
    (store / "zarr.json").unlink()
    os.mkfifo(store / "zarr.json")
    return store


def zarr_endless(folder: Path) -> Path:
    store = _zarr(folder, chunks=(M, N))
    (store / "zarr.json").unlink()
    (store / "zarr.json").symlink_to("/dev/zero")
    return store


def hdf5_bomb(folder: Path) -> Path:
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        victim = file.create_dataset("A", (100_000, 20), "f8", chunks=(100_000, 20), compression="gzip")
        victim.id.write_direct_chunk((0, 0), _packed_zeros(15))
        file["y"] = np.ones(100_000)
    return folder / "x.h5"


def hdf5_link_to_a_pipe(folder: Path) -> Path:
    import h5py

    os.mkfifo(folder / "pipe.h5")
    with h5py.File(folder / "x.h5", "w") as file:
        file["A"], file["y"] = h5py.ExternalLink("pipe.h5", "/A"), Y
    return folder / "x.h5"


def parquet_wide_row(folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    width = 150_000_000
    lists = pyarrow.ListArray.from_arrays(
        pyarrow.array([0, width], pyarrow.int32()), pyarrow.array(np.zeros(width, np.int8))
    )
    pyarrow.parquet.write_table(pyarrow.table({"A": lists, "y": [1.0]}), folder / "x.parquet")
    return folder / "x.parquet"


def parquet_column_twice(folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    columns = {f"a{i}": A[:, i] for i in range(N)} | {"a01": A[:, 0], "y": Y}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "x.parquet")
    return folder / "x.parquet"


def npz_long_header(folder: Path) -> Path:
    import zipfile

    np.savez(folder / "x.npz", y=Y)
    with zipfile.ZipFile(folder / "x.npz", "a", zipfile.ZIP_DEFLATED) as archive, archive.open("A.npy", "w") as member:
        member.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", BOMB))
        for _ in range(BOMB >> 24):
            member.write(bytes(1 << 24))
    return folder / "x.npz"


CORPUS: tuple[Callable[[Path], Path], ...] = (
    zarr_inner_chunk_missing,
    zarr_empty_shard,
    zarr_bomb,
    zarr_pipe,
    zarr_endless,
    hdf5_bomb,
    hdf5_link_to_a_pipe,
    parquet_wide_row,
    parquet_column_twice,
    npz_long_header,
)
