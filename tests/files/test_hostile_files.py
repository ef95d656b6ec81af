"""Files made to harm, or damaged so that they would: nothing is made up, nobody waits, memory stays what the shapes declare."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import struct
import textwrap
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.effort import THOROUGH
from tests.processes import start

from robustphase.files import DataError, open_samples, save_samples
from robustphase.rows import project
from robustphase.rows.io.unpacking import SIZES, check_unpacks

#: What the bombs below unpack to, and how much a child process may take beyond what it has after the imports.
BOMB, ALLOWED = 600_000_000, 300

M, N = 60, 5


@pytest.fixture
def samples():
    rng = np.random.default_rng(3)
    return rng.standard_normal((M, N)), rng.random(M)


def refusal(path: Path, responses: Path | None = None) -> str:
    with pytest.raises(DataError) as caught, open_samples(path, responses) as opened:
        project(opened.covariates, np.ones(opened.covariates.shape[1]))
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def refused_in_a_child(path: Path) -> str:
    """What a child process says of a file; its memory must not grow by more than is allowed."""
    program = f"""
        import resource, sys, warnings
        import numpy
        from robustphase.files import DataError, open_samples
        from robustphase.rows import project
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        before = peak()
        try:
            with open_samples({str(path)!r}) as opened:
                project(opened.covariates, numpy.ones(opened.covariates.shape[1]))
        except DataError as error:
            print(peak() - before, error)
    """
    child = start(textwrap.dedent(program))
    told, _ = child.communicate(timeout=120)
    assert child.wait() == 0
    grown, _, said = told.strip().partition(" ")
    assert said, "it was read"
    assert int(grown) < ALLOWED, f"{grown} MB"
    return said


@pytest.fixture
def nobody_waits():
    """A test that waits for the other end of a pipe fails after a while."""

    def late(*_):
        pytest.fail("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def zarr_group(path, samples, **options):
    zarr = pytest.importorskip("zarr")
    A, y = samples
    group = zarr.open_group(path, mode="w", zarr_format=options.pop("zarr_format", 3))
    group.create_array("A", shape=A.shape, dtype=A.dtype, **options)[:] = A
    group.create_array("y", shape=y.shape, dtype=y.dtype)[:] = y
    return group


def chunk_files(folder):
    return sorted(f for f in folder.rglob("*") if f.is_file() and not f.name.startswith((".z", "zarr")))


# --- numbers that are not there --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_chunk_missing_inside_a_shard_is_refused(tmp_path, samples, location):
    pytest.importorskip("zarr")
    from zarr.codecs import ShardingCodec

    A, y = samples
    import zarr

    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    serializer = ShardingCodec(chunk_shape=(8, N), index_location=location)
    partly = group.create_array(
        "A", shape=A.shape, dtype=A.dtype, chunks=(32, N), serializer=serializer, compressors=None
    )
    partly[:8], partly[16:] = A[:8], A[16:]
    group.create_array("y", shape=y.shape, dtype=y.dtype)[:] = y
    assert "are missing or not whole" in refusal(tmp_path / "x.zarr")
    partly[8:16] = A[8:16]
    with open_samples(tmp_path / "x.zarr") as opened:
        np.testing.assert_array_equal(project(opened.covariates, np.eye(N)), A)


@pytest.mark.parametrize("kept", [0, 5])
def test_an_empty_or_cut_shard_is_refused(tmp_path, samples, kept):
    zarr_group(tmp_path / "x.zarr", samples, chunks=(8, N), shards=(32, N))
    victim = chunk_files(tmp_path / "x.zarr" / "A")[0]
    victim.write_bytes(victim.read_bytes()[:kept])
    assert "1 of the 2 chunks" in refusal(tmp_path / "x.zarr")


def test_an_empty_chunk_is_refused(tmp_path, samples):
    zarr_group(tmp_path / "x.zarr", samples, chunks=(8, N), compressors=None)
    chunk_files(tmp_path / "x.zarr" / "A")[0].write_bytes(b"")
    assert "1 of the 8 chunks" in refusal(tmp_path / "x.zarr")


def test_chunks_missing_from_a_store_in_memory_are_refused_too(samples):
    zarr = pytest.importorskip("zarr")
    from robustphase.rows import as_source

    array = zarr.create_array(zarr.storage.MemoryStore(), shape=(M, N), chunks=(8, N), shards=(32, N), dtype="f8")
    array[:8], array[16:] = samples[0][:8], samples[0][16:]
    with pytest.raises(DataError, match="missing or not whole"):
        as_source(array)
    array[:] = samples[0]
    np.testing.assert_array_equal(project(as_source(array), np.eye(N)), samples[0])


def test_two_parquet_columns_for_one_feature_are_refused(tmp_path, samples):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    A, y = samples
    columns = {f"a{i}": A[:, i] for i in range(N)} | {"a01": A[:, 0], "y": y}
    parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
    assert "columns a1 and a01, which both mean feature 1" in refusal(tmp_path / "x.parquet")


# --- pipes, devices and links ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", ["zarr.json", "A/zarr.json", "A/c/0/0"])
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_a_zarr_store_with_a_pipe_or_a_device_in_it_is_refused(tmp_path, samples, member, kind, nobody_waits):
    zarr_group(tmp_path / "x.zarr", samples, chunks=(M, N))
    victim = tmp_path / "x.zarr" / member
    victim.unlink()
    if kind == "pipe":
        os.mkfifo(victim)
    else:
        victim.symlink_to("/dev/zero")
    assert ("pipe, device or socket" if kind == "pipe" else "leads out of") in refusal(tmp_path / "x.zarr")


def test_a_link_out_of_a_zarr_store_is_refused_and_one_within_is_followed(tmp_path, samples):
    zarr_group(tmp_path / "x.zarr", samples, chunks=(M, N))
    chunk = tmp_path / "x.zarr" / "A" / "c" / "0" / "0"
    chunk.rename(tmp_path / "x.zarr" / "elsewhere")
    chunk.symlink_to(tmp_path / "x.zarr" / "elsewhere")
    with open_samples(tmp_path / "x.zarr") as opened:
        np.testing.assert_array_equal(project(opened.covariates, np.eye(N)), samples[0])
    (tmp_path / "x.zarr" / "elsewhere").rename(tmp_path / "outside")
    chunk.unlink()
    chunk.symlink_to(tmp_path / "outside")
    assert "leads out of its zarr store" in refusal(tmp_path / "x.zarr")


def test_hdf5_links_to_other_files_are_refused_and_those_within_followed(tmp_path, samples, nobody_waits):
    h5py = pytest.importorskip("h5py")
    A, y = samples
    save_samples(tmp_path / "other.h5", A, y)
    os.mkfifo(tmp_path / "pipe.h5")
    for target in ("other.h5", "pipe.h5"):
        for name in ("A", "y"):
            with h5py.File(tmp_path / "x.h5", "w") as file:
                file["kept/A"], file["kept/y"] = A, y
                for other in {"A", "y"} - {name}:
                    file[other] = h5py.SoftLink(f"/kept/{other}")
                file["hidden"] = h5py.ExternalLink(target, "/")
                file[name] = h5py.SoftLink(f"hidden/{name}")
            assert "link to another file" in refusal(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "a") as file:
        del file["y"]
        file["y"] = h5py.SoftLink("kept/y")
    with open_samples(tmp_path / "x.h5") as opened:
        np.testing.assert_array_equal(opened.responses, y)


@pytest.mark.parametrize("name", ["A", "y"])
def test_an_hdf5_type_that_no_number_has_is_refused(tmp_path, samples, name):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        # Single precision for the other, so that the bytes below are those of one type.
        for other, values in zip(("A", "y"), samples, strict=True):
            file[other] = values if other == name else values.astype(np.float32)
    data = (tmp_path / "x.h5").read_bytes()
    # The layout of a double: where its exponent and mantissa are, and the bias of the exponent.
    layout = bytes.fromhex("340b0034ff030000")
    assert data.count(layout) == 1
    (tmp_path / "x.h5").write_bytes(data.replace(layout, layout[:4] + bytes(4)))
    assert "x.h5" in refusal(tmp_path / "x.h5")


def test_links_in_a_circle_are_no_dataset(tmp_path, samples):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["A"], file["B"], file["y"] = h5py.SoftLink("/B"), h5py.SoftLink("/A"), samples[1]
    assert "no dataset named A" in refusal(tmp_path / "x.h5")


# --- more than was declared ------------------------------------------------------------------------------------------------


@cache
def zeros_packed(bits: int) -> bytes:
    """Zeros as zlib (15 bits) or gzip (31) pack them: a piece that does not refer to others, many times."""
    packer, piece, pieces = zlib.compressobj(1, zlib.DEFLATED, bits), bytes(1 << 20), BOMB >> 20
    first = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    packed, total = first + again * (pieces - 1) + zlib.compressobj(1, zlib.DEFLATED, -15).flush(), pieces << 20
    if bits == 15:
        return packed + struct.pack(">I", total % 65521 << 16 | 1)  # Adler's sum of zeros
    checksum = 0
    for _ in range(pieces):
        checksum = zlib.crc32(piece, checksum)
    return packed + struct.pack("<II", checksum, total)


@pytest.mark.parametrize("bits", [15, 31])
def test_packed_zeros_are_whole(bits):
    unpacker, size = zlib.decompressobj(bits), 0
    rest = zeros_packed(bits)
    while not unpacker.eof:
        size += len(unpacker.decompress(rest, 1 << 24))
        rest = unpacker.unconsumed_tail
    assert (size, rest, unpacker.unused_data) == (BOMB >> 20 << 20, b"", b"")


@pytest.mark.parametrize("sharded", [False, True])
def test_a_zarr_chunk_that_unpacks_to_too_much_is_refused(tmp_path, samples, sharded):
    pytest.importorskip("zarr")
    from zarr.codecs import GzipCodec

    options = {"chunks": (M, N), "compressors": [GzipCodec()]} | ({"shards": (M, N)} if sharded else {})
    zarr_group(tmp_path / "x.zarr", samples, **options)
    (chunk,) = chunk_files(tmp_path / "x.zarr" / "A")
    bomb = zeros_packed(31)
    if sharded:
        from google_crc32c import value

        index = struct.pack("<QQ", 0, len(bomb))
        bomb += index + struct.pack("<I", value(index))
    chunk.write_bytes(bomb)
    # Longer than the array allows already as it is stored, or when it is unpacked.
    assert re.search("longer than|unpacks to more|not whole", refused_in_a_child(tmp_path / "x.zarr"))


def test_a_small_zarr_chunk_that_unpacks_to_too_much_is_refused(tmp_path):
    zarr = pytest.importorskip("zarr")
    from zarr.codecs import GzipCodec

    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    array = group.create_array("A", shape=(40_000, 10), dtype="f8", chunks=(40_000, 10), compressors=[GzipCodec()])
    array[:] = 1.0
    group.create_array("y", shape=(40_000,), dtype="f8")[:] = 1.0
    (chunk,) = chunk_files(tmp_path / "x.zarr" / "A")
    chunk.write_bytes(zeros_packed(31))
    assert "unpacks to more than the" in refused_in_a_child(tmp_path / "x.zarr")


@pytest.mark.parametrize("checksum", [False, True])
def test_an_hdf5_chunk_that_unpacks_to_too_much_is_refused(tmp_path, checksum):
    h5py = pytest.importorskip("h5py")
    shape = (40_000, 10)
    for name in ("A", "y"):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["A"], file["y"] = np.ones(shape), np.ones(shape[0])
            del file[name]
            size = shape if name == "A" else shape[:1]
            victim = file.create_dataset(
                name, size, "f8", chunks=size, compression="gzip", fletcher32=checksum, shuffle=True
            )
            # The filter of the checksum is marked as left out for this chunk.
            victim.id.write_direct_chunk((0,) * len(size), zeros_packed(15), filter_mask=4 if checksum else 0)
        said = refused_in_a_child(tmp_path / "x.h5")
        assert re.search("unpacks to more than the|longer than the dataset allows", said)


def test_a_parquet_row_of_very_many_equal_numbers_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    width = 45_000_000
    numbers = pyarrow.array(np.zeros(width))
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, width], pyarrow.int32()), numbers)
    parquet.write_table(pyarrow.table({"A": lists, "y": [1.0]}), tmp_path / "x.parquet", write_statistics=False)
    assert (tmp_path / "x.parquet").stat().st_size < 2000
    assert "unknowns" in refused_in_a_child(tmp_path / "x.parquet")


def test_a_parquet_page_with_more_numbers_than_the_file_declares_is_refused(tmp_path, samples):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    A, y = samples
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    parquet.write_table(pyarrow.table({"A": list(A), "y": y}), tmp_path / "x.parquet", **plain)
    data = bytearray((tmp_path / "x.parquet").read_bytes())
    # The first header: type, two sizes, and in a structure the number of entries, 300 as a signed variable-length number.
    place = data.index(bytes([0xD8, 0x04]))
    data[place : place + 2] = bytes([0xDA, 0x04])
    (tmp_path / "x.parquet").write_bytes(bytes(data))
    assert "301 numbers where the file declares 300" in refusal(tmp_path / "x.parquet")


def test_an_npy_header_of_gigabytes_is_refused(tmp_path):
    with open(tmp_path / "x.npy", "wb") as file:
        file.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", BOMB))
        file.truncate(BOMB + 100)
    np.save(tmp_path / "y.npy", np.ones(3))
    assert "declares a length of" in refusal(tmp_path / "x.npy", tmp_path / "y.npy")


def test_the_size_of_a_packed_block_is_found_without_unpacking_it(case):
    numcodecs = pytest.importorskip("numcodecs")
    for name in ("GZip", "Zlib", "BZ2", "LZMA", "Zstd", "Blosc", "LZ4"):
        with case(name):
            codec, encode = name.lower(), getattr(numcodecs, name)().encode
            for raw in (b"abc", np.random.default_rng(0).bytes(700_001), bytes(3_000_000)):
                packed = bytes(encode(raw))
                assert SIZES[codec](packed, 1 << 30) == len(raw)
                check_unpacks(codec, packed, len(raw), "a block")
            with pytest.raises(DataError, match="unpacks to more"):
                check_unpacks(codec, packed, 1000, "a block")
            with pytest.raises(DataError, match=r"cannot be unpacked|unpacks to more"):
                check_unpacks(codec, packed[:3], 10**9, "a block")


def test_a_zstd_frame_that_does_not_state_its_size_is_bounded_by_its_blocks():
    # A frame of a thousand blocks, each one byte repeated 128 KiB times.
    header = struct.pack("<IBB", 0xFD2FB528, 0, 0x58)
    block = lambda last: int.to_bytes((1 << 17) << 3 | 1 << 1 | last, 3, "little") + b"x"  # noqa: E731
    frame = header + block(0) * 999 + block(1)
    assert SIZES["zstd"](frame, 1 << 40) == 1000 << 17


def test_several_gzip_members_count_together():
    packed = gzip.compress(bytes(10**6)) * 3
    assert SIZES["gzip"](packed, 1 << 30) == 3 * 10**6


def test_lzf_blocks_of_hdf5_are_measured(tmp_path):
    h5py = pytest.importorskip("h5py")
    A = np.repeat(np.arange(500.0), 20).reshape(1000, 10)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("A", data=A, chunks=(100, 10), compression="lzf")
        file["y"] = np.ones(1000)
    with open_samples(tmp_path / "x.h5") as opened:
        np.testing.assert_array_equal(project(opened.covariates, np.eye(10)), A)
    with h5py.File(tmp_path / "x.h5") as file:
        _, data = file["A"].id.read_direct_chunk((0, 0))
    assert SIZES["lzf"](data, 1 << 30) == 8000


def test_codecs_and_filters_whose_size_nobody_knows_are_refused(tmp_path, samples):
    zarr_group(tmp_path / "x.zarr", samples, chunks=(M, N))
    described = tmp_path / "x.zarr" / "A" / "zarr.json"
    metadata = json.loads(described.read_text())
    metadata["codecs"] += [{"name": "gzip", "configuration": {"level": 1}}]
    described.write_text(json.dumps(metadata))
    assert "several codecs that pack" in refusal(tmp_path / "x.zarr")


# --- what the HDF5 library does not survive -----------------------------------------------------------------------------------


def test_a_file_on_which_the_hdf5_library_dies_or_hangs_is_refused(tmp_path, samples, monkeypatch):
    """The library is made to: which damage it does not survive changes from version to version."""
    pytest.importorskip("h5py")
    from robustphase.rows.io import hdf5_probe

    broken = Path(hdf5_probe.__file__).read_text("utf-8")
    for act, told in (
        ("os.kill(os.getpid(), 11)", "crashed on it"),
        ("exec('while True: pass')", "did not come to an end"),
    ):
        # What hangs costs a second: what else is read hangs as the first does.
        for name in ("A", "y", "truth") if THOROUGH or "kill" in act else ("A", "truth"):
            save_samples(tmp_path / "x.h5", *samples, truth=samples[0][0], note="kept")
            program = tmp_path / "probe.py"
            program.write_text(
                broken.replace(
                    "            _say(name)\n", f"            if name == {name!r}: {act}\n            _say(name)\n"
                ).replace("COMPUTING, PATIENCE = 10, 60", "COMPUTING, PATIENCE = 1, 60")
            )
            monkeypatch.setattr(hdf5_probe, "__file__", str(program))
            monkeypatch.setattr(hdf5_probe, "_found", {})
            if name == "truth":
                with open_samples(tmp_path / "x.h5") as opened:
                    assert opened.truth is None
                    assert opened.metadata == {}
            else:
                assert told in refusal(tmp_path / "x.h5")


def test_the_notes_of_an_hdf5_file_come_from_the_child(tmp_path, samples):
    pytest.importorskip("h5py")
    save_samples(tmp_path / "x.h5", *samples, note="kept")
    with open_samples(tmp_path / "x.h5") as opened:
        assert opened.metadata == {"note": "kept"}


LONG = "x" * 6000


def long_npy(folder: Path, A, y) -> tuple[Path, Path]:
    np.save(folder / "A.npy", np.zeros(A.shape, [(LONG, "f8")]))
    np.save(folder / "y.npy", y)
    return folder / "A.npy", folder / "y.npy"


def long_npz_names(folder: Path, A, y) -> tuple[Path, None]:
    np.savez(folder / "x.npz", **{f"{number}{LONG[:200]}": A for number in range(50)})
    return folder / "x.npz", None


def long_hdf5_names(folder: Path, A, y) -> tuple[Path, None]:
    with pytest.importorskip("h5py").File(folder / "x.h5", "w") as file:
        for number in range(30):
            file[f"{number}{LONG}"] = A
    return folder / "x.h5", None


def long_hdf5_type(folder: Path, A, y) -> tuple[Path, None]:
    with pytest.importorskip("h5py").File(folder / "x.h5", "w") as file:
        file["A"], file["y"] = np.zeros(A.shape, [(LONG, "f8")]), y
    return folder / "x.h5", None


def long_zarr_codec(folder: Path, A, y) -> tuple[Path, None]:
    pytest.importorskip("zarr")
    save_samples(folder / "x.zarr", A, y)
    described = folder / "x.zarr" / "A" / "zarr.json"
    described.write_text(json.dumps(json.loads(described.read_text()) | {"codecs": [{"name": LONG}]}))
    return folder / "x.zarr", None


def long_parquet_names(folder: Path, A, y) -> tuple[Path, None]:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.table({f"{number}{LONG}": y for number in range(30)}), folder / "x.parquet"
    )
    return folder / "x.parquet", None


def long_csv_names(folder: Path, A, y) -> tuple[Path, None]:
    (folder / "x.csv").write_text(f"1{LONG},2{LONG}\n1,2\n")
    return folder / "x.csv", None


@pytest.mark.parametrize(
    "make",
    [
        long_npy,
        long_npz_names,
        long_hdf5_names,
        long_hdf5_type,
        long_zarr_codec,
        long_parquet_names,
        long_csv_names,
    ],
)
def test_an_error_quotes_a_long_name_or_type_in_part(tmp_path, samples, make):
    said = refusal(*make(tmp_path, *samples))
    assert len(said) < 1000 + len(str(tmp_path))
