"""Fuzz the readers of files for a bounded time: ``python -m benchmarks.fuzz_files SECONDS [--seed S] [--only FORM]``.

Valid files of every kind are damaged (bits flipped, ends cut off, ranges overwritten, digits of headers changed, chunks
deleted) and opened, one pass is made over what opens, and a fit to it. It must work, or raise ``DataError``; a fit may also
refuse the numbers with a ``ValueError``. Anything else is a failure: another exception, a crash of the process, or no answer
within 20 seconds. Cases run in a child process that may take 1.5 GB of memory, so a reader that believes a header which
declares a terabyte is caught, too. Checkpoints are damaged likewise and resumed: the same bits, or a refusal. Before all
that, the files that once did harm are tried (``hostile_files``). A failure is printed with its form and number; ``--only FORM
--case NUMBER`` repeats it.

Where a damaged file works, its numbers are compared with those that were written. Other numbers from a kind of file that has
checksums, or another answer from a checkpoint, are failures, too. Elsewhere a flipped bit of a number cannot be noticed: such
cases are counted as changed.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.hostile_files import CORPUS

if TYPE_CHECKING:
    from robustphase.files import StoredSamples

M, N = 60, 5
#: Address space of the child beyond what it has after the imports, and seconds until a case counts as hanging.
ROOM, PATIENCE = 3 << 29, 20.0
#: The form that is a folder with a fit that was cut off, and passes that it had made.
CHECKPOINT, PASSES = "checkpoint", 12
#: The form that stands for all files that once did harm.
HOSTILE = "hostile"


class Case(NamedTuple):
    """A valid file, and the responses beside it if they are not in it."""

    path: Path
    responses: Path | None


def _arrays(dtype: str = "f8") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    A = rng.standard_normal((M, N)).astype(dtype)
    if A.dtype.kind == "c":
        A += 1j * rng.standard_normal((M, N)).astype(A.real.dtype)
    return A, rng.random(M)


def _npy(folder: Path, dtype: str = "f8", order: str = "C") -> Case:
    A, y = _arrays(dtype)
    np.save(folder / "A.npy", np.asarray(A, order=order))
    np.save(folder / "y.npy", y)
    return Case(folder / "A.npy", folder / "y.npy")


def _npy_responses(folder: Path) -> Case:
    """The file to damage is the one with the responses."""
    A, y = _arrays()
    np.save(folder / "A.npy", A)
    np.save(folder / "y.npy", y)
    return Case(folder / "y.npy", folder / "A.npy")


def _ours(suffix: str, dtype: str = "f8") -> Callable[[Path], Case]:
    def make(folder: Path) -> Case:
        from robustphase.files import save_samples

        A, y = _arrays(dtype)
        save_samples(folder / f"samples{suffix}", A, y, truth=A[0], note="as written")
        return Case(folder / f"samples{suffix}", None)

    return make


def _savez(folder: Path, compressed: bool) -> Case:
    A, y = _arrays()
    (np.savez_compressed if compressed else np.savez)(folder / "samples.npz", A=A, y=y)
    return Case(folder / "samples.npz", None)


def _hdf5(folder: Path, **options: object) -> Case:
    import h5py

    A, y = _arrays()
    libver = options.pop("libver", None)
    with h5py.File(folder / "samples.h5", "w", libver=libver) as file:
        file.create_dataset("A", data=A, **options)
        file.create_dataset("y", data=y)
    return Case(folder / "samples.h5", None)


def _zarr(folder: Path, **options: object) -> Case:
    import zarr

    A, y = _arrays()
    group = zarr.open_group(folder / "samples.zarr", mode="w", zarr_format=options.pop("zarr_format", 3))
    group.create_array("A", shape=A.shape, dtype=A.dtype, **options)[:] = A
    group.create_array("y", shape=y.shape, dtype=y.dtype)[:] = y
    return Case(folder / "samples.zarr", None)


def _parquet(folder: Path, wide: bool) -> Case:
    import pyarrow
    import pyarrow.parquet

    A, y = _arrays()
    columns = {f"a{i}": A[:, i] for i in range(N)} if wide else {"A": list(A)}
    pyarrow.parquet.write_table(pyarrow.table({**columns, "y": y}), folder / "samples.parquet", row_group_size=25)
    return Case(folder / "samples.parquet", None)


def _mat(folder: Path, compressed: bool) -> Case:
    from scipy.io import savemat

    A, y = _arrays("c16")
    savemat(folder / "samples.mat", {"A": A, "y": y}, do_compression=compressed)
    return Case(folder / "samples.mat", None)


def _matlab(folder: Path) -> Case:
    """As MATLAB 7.3 has it: axes in the opposite order, complex numbers as pairs, behind a block of its own."""
    import h5py

    A, y = _arrays("c16")
    pairs = np.empty(A.T.shape, [("real", "f8"), ("imag", "f8")])
    pairs["real"], pairs["imag"] = A.T.real, A.T.imag
    path = folder / "samples.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("A", data=pairs, chunks=(N, 16), compression="gzip")
        file.create_dataset("y", data=y[np.newaxis], chunks=True, compression="gzip")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(116))
    return Case(path, None)


def _csv(folder: Path) -> Case:
    A, y = _arrays()
    names = ",".join([*(f"a{i}" for i in range(N)), "y"])
    np.savetxt(folder / "samples.csv", np.column_stack((A, y)), delimiter=",", header=names, comments="")
    return Case(folder / "samples.csv", None)


def _tiff(folder: Path, compression: str | None) -> Case:
    """The file to damage is the one with the frames."""
    import tifffile

    A, _ = _arrays()
    frames = np.random.default_rng(8).integers(0, 4000, (M, 2, 3)).astype(np.uint16)
    tifffile.imwrite(folder / "frames.tif", frames, photometric="minisblack", compression=compression)
    np.save(folder / "y.npy", np.abs(A[:, 0]))
    return Case(folder / "frames.tif", folder / "y.npy")


def _stack() -> tuple[np.ndarray, np.ndarray]:
    """Patterns of 2 x 3 pixels, and responses of two signals to them."""
    rng = np.random.default_rng(9)
    patterns = rng.standard_normal((M, 2, 3))
    return patterns, (patterns.reshape(M, -1) @ rng.standard_normal((6, 2))) ** 2


def _npz_stack(folder: Path, signals: int) -> Case:
    patterns, y = _stack()
    np.savez(folder / "samples.npz", A=patterns, y=y if signals > 1 else y[:, 0])
    return Case(folder / "samples.npz", None)


def _hdf5_stack(folder: Path) -> Case:
    import h5py

    patterns, y = _stack()
    with h5py.File(folder / "samples.h5", "w") as file:
        file.create_dataset("A", data=patterns, chunks=(16, 2, 3), compression="gzip")
        file["y"] = y
    return Case(folder / "samples.h5", None)


def _zarr_stack(folder: Path) -> Case:
    import zarr

    patterns, y = _stack()
    group = zarr.open_group(folder / "samples.zarr", mode="w")
    group.create_array("A", shape=patterns.shape, dtype=patterns.dtype, chunks=(16, 2, 3))[:] = patterns
    group.create_array("y", shape=y.shape, dtype=y.dtype)[:] = y
    return Case(folder / "samples.zarr", None)


def _mat_stack(folder: Path) -> Case:
    from scipy.io import savemat

    patterns, y = _stack()
    savemat(folder / "samples.mat", {"A": patterns, "y": y}, do_compression=True)
    return Case(folder / "samples.mat", None)


def _csv_responses(folder: Path) -> Case:
    """The file to damage is the one with the responses, in text without names."""
    A, y = _arrays()
    np.save(folder / "A.npy", A)
    np.savetxt(folder / "y.csv", y)
    return Case(folder / "y.csv", folder / "A.npy")


def _checkpoint(folder: Path) -> Case:
    """A fit that was cut off; what it is a fit to is always the same."""
    _resumed(folder / "run.checkpoint", most=PASSES)
    return Case(folder / "run.checkpoint", None)


def _resumed(folder: Path, most: int | None = None) -> str:
    """Go on with a fit, and return its signal as digits; with ``most`` it is cut off after so many passes."""
    from robustphase import RobustPhaseRetrieval
    from robustphase.files import checkpointed
    from robustphase.rows import MemoryRows

    class Mortal(MemoryRows):
        def _reduce(self, *arguments: Any) -> Any:
            if most is not None and self.passes > most:
                raise KeyboardInterrupt
            return super()._reduce(*arguments)

    A, y = _arrays()
    y, model = np.abs(A @ np.arange(1.0, N + 1)) ** 2 + y, RobustPhaseRetrieval(0.1)
    with suppress(KeyboardInterrupt), checkpointed(folder, model, Mortal(A), y, interval=0) as rows:
        return model.fit(rows, y).signal_.tobytes().hex()
    return "cut off"


FORMS: dict[str, Callable[[Path], Case]] = {
    "npy": _npy,
    "npy columns": lambda folder: _npy(folder, order="F"),
    "npy complex64": lambda folder: _npy(folder, dtype="c8"),
    "npy big-endian int": lambda folder: _npy(folder, dtype=">i4"),
    "npy responses": _npy_responses,
    "npz ours": _ours(".npz"),
    "npz savez": lambda folder: _savez(folder, compressed=False),
    "npz compressed": lambda folder: _savez(folder, compressed=True),
    "hdf5 ours": _ours(".h5", "c16"),
    "hdf5 oldest": lambda folder: _hdf5(folder, libver="earliest"),
    "hdf5 latest": lambda folder: _hdf5(folder, libver="latest"),
    "hdf5 gzip": lambda folder: _hdf5(folder, chunks=(16, N), compression="gzip", shuffle=True),
    "hdf5 fletcher": lambda folder: _hdf5(folder, chunks=(7, 2), fletcher32=True),
    "zarr ours": _ours(".zarr"),
    "zarr zstd": lambda folder: _zarr(folder, chunks=(16, N)),
    "zarr sharded": lambda folder: _zarr(folder, chunks=(8, N), shards=(32, N)),
    "zarr v2": lambda folder: _zarr(folder, chunks=(16, N), zarr_format=2),
    "parquet ours": _ours(".parquet", "c8"),
    "parquet lists": lambda folder: _parquet(folder, wide=False),
    "parquet columns": lambda folder: _parquet(folder, wide=True),
    "mat plain": lambda folder: _mat(folder, compressed=False),
    "mat packed": lambda folder: _mat(folder, compressed=True),
    "matlab 7.3": _matlab,
    "mat stack": _mat_stack,
    "npz stack": lambda folder: _npz_stack(folder, signals=1),
    "npz stack, signals": lambda folder: _npz_stack(folder, signals=2),
    "hdf5 stack": _hdf5_stack,
    "zarr stack": _zarr_stack,
    "csv": _csv,
    "csv responses": _csv_responses,
    "tiff plain": lambda folder: _tiff(folder, None),
    "tiff deflate": lambda folder: _tiff(folder, "zlib"),
    CHECKPOINT: _checkpoint,
}

#: Forms with checksums over everything that is read, which must never give other numbers than those that were written.
CHECKSUMMED = ("npz ours", "npz savez", "npz compressed", "npz stack", "npz stack, signals", "zarr ours", CHECKPOINT)

PACKAGES = {"hdf5": "h5py", "matlab": "h5py", "tiff": "tifffile", "zarr": "zarr", "parquet": "pyarrow"}


def installed(form: str) -> bool:
    """Whether the package that a form needs is there."""
    package = PACKAGES.get(form.split()[0])
    return package is None or find_spec(package) is not None


def damage(path: Path, rng: np.random.Generator) -> None:
    """Change a file, or one file of a folder, in one of many ways."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        # Half of the time the metadata: that is where a few bytes mean most.
        described = [file for file in files if file.name.startswith((".z", "zarr"))]
        file = Path(rng.choice(described if described and rng.random() < 0.5 else files))  # type: ignore[arg-type]
        if rng.random() < 0.1:
            file.unlink()
            return
        damage(file, rng)
        return
    data = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 4))):
        data = CHANGES[int(rng.integers(len(CHANGES)))](data, rng)
    path.write_bytes(bytes(data))


def _place(data: bytearray, rng: np.random.Generator) -> int:
    """Somewhere in a file, mostly near its ends, where headers and footers are."""
    near = min(len(data), int(rng.choice((64, 512, 4096, len(data) + 1))))
    offset = int(rng.integers(near)) if near else 0
    return offset if rng.random() < 0.7 else max(0, len(data) - 1 - offset)


def _flip(data: bytearray, rng: np.random.Generator) -> bytearray:
    for _ in range(int(rng.integers(1, 9))):
        if data:
            data[_place(data, rng)] ^= 1 << int(rng.integers(8))
    return data


def _cut(data: bytearray, rng: np.random.Generator) -> bytearray:
    return data[: int(rng.integers(len(data) + 1))]


def _overwrite(data: bytearray, rng: np.random.Generator) -> bytearray:
    start, length = _place(data, rng), int(rng.integers(1, 33))
    filler = (bytes(length), b"\xff" * length, rng.bytes(length))[int(rng.integers(3))]
    data[start : start + length] = filler[: max(0, len(data) - start)]
    return data


def _remove(data: bytearray, rng: np.random.Generator) -> bytearray:
    start = _place(data, rng)
    del data[start : start + int(rng.integers(1, 33))]
    return data


def _insert(data: bytearray, rng: np.random.Generator) -> bytearray:
    start = _place(data, rng)
    data[start:start] = rng.bytes(int(rng.integers(1, 33)))
    return data


def _digits(data: bytearray, rng: np.random.Generator) -> bytearray:
    """Change a number that is written out, as in the headers of .npy and zarr."""
    digits = [i for i, byte in enumerate(data[:4096]) if 48 <= byte < 58]
    if digits:
        place = int(rng.choice(digits))
        data[place : place + 1] = (
            str(int(10 ** rng.uniform(0, 20))).encode() if rng.random() < 0.5 else b"%d" % rng.integers(10)
        )
    return data


def _words(data: bytearray, rng: np.random.Generator) -> bytearray:
    """Change a word of a header for another that means something."""
    words = (
        b"<f8",
        b"|O",
        b">f4",
        b"<c16",
        b"<i8",
        b"|S1",
        b"<U3",
        b"float64",
        b"string",
        b"True",
        b"False",
        b"null",
        b"bytes",
        b"blosc",
    )
    old, new = (words[int(rng.integers(len(words)))] for _ in range(2))
    return data.replace(old, new, 1)


CHANGES = (_flip, _flip, _cut, _overwrite, _remove, _insert, _digits, _words)


def try_case(case: Case, form: str) -> str:
    """``"same"``, ``"changed"`` or ``"refused"``; other exceptions pass through."""
    from robustphase.files import DataError, fingerprint, open_samples
    from robustphase.rows import project

    path, responses = (case.responses, case.path) if form.endswith("responses") else case
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if form == CHECKPOINT:
                return _resumed(path)
            with open_samples(path, responses) as samples:
                project(samples.covariates, np.ones(samples.covariates.shape[1]))
                print_ = fingerprint(samples.covariates, samples.responses)
                _fit(samples)
    except DataError as error:
        text = str(error)
        if "\n" in text or not text.endswith("."):
            raise AssertionError(f"not one plain sentence: {text!r}") from error
        return "refused"
    return print_


def _fit(samples: StoredSamples) -> None:
    """A fit to whatever has been read: numbers that cannot be fitted are refused in a sentence."""
    from robustphase import RobustPhaseRetrieval
    from robustphase.files import DataError

    if samples.covariates.shape[0] * samples.covariates.shape[1] > 10 * M * N:
        return
    try:
        RobustPhaseRetrieval(0.1).fit(samples.covariates, samples.responses)
    except DataError:
        raise
    except ValueError as error:
        if len(str(error)) > 1000 or not str(error):
            raise AssertionError(f"no sentence: {str(error)[:2000]!r}") from error


def worker(connection: Connection, folder: str, seed: int) -> None:
    """Answer numbers of cases with what came of them."""
    import resource

    logging.disable()  # What a package that reads files says of damage besides is not looked at.
    for package in PACKAGES.values():
        if find_spec(package):
            import_module(package)
    if find_spec("zarr"):
        import_module("zarr").open_group(Path(folder) / "warm.zarr", mode="w")  # Its threads take address space.
    used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    place = Path(folder) / "case"
    originals: dict[str, tuple[Path, Case, str]] = {}
    connection.send("ready")
    while (asked := connection.recv()) is not None:
        form, number = asked
        if form == HOSTILE:
            try:
                outcome = try_case(Case(Path(number), None), form)
                connection.send((outcome, "") if outcome == "refused" else ("failed", "it was read\n"))
            except BaseException:  # Whatever is not a refusal is the failure that is looked for, also an exit.
                connection.send(("failed", traceback.format_exc()))
            continue
        if form not in originals:
            home = Path(folder) / form.replace(" ", "-")
            home.mkdir(exist_ok=True)
            made = FORMS[form](home)
            # To resume a checkpoint is to end it: that is done with a copy.
            whole = Path(folder) / "whole"
            shutil.copytree(home, whole)
            print_ = try_case(Case(*(None if part is None else whole / part.relative_to(home) for part in made)), form)
            shutil.rmtree(whole)
            originals[form] = (home, made, print_)
        home, made, print_ = originals[form]
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(home, place)
        case = Case(*(None if part is None else place / part.relative_to(home) for part in made))
        damage(case.path, np.random.default_rng([seed, list(FORMS).index(form), number]))
        try:
            outcome = try_case(case, form)
            told = outcome if outcome == "refused" else "same" if outcome == print_ else "changed"
            silent = told == "changed" and form in CHECKSUMMED
            connection.send(("failed", "other numbers, and nothing was said\n") if silent else (told, ""))
        except BaseException:  # As for hostile files: whatever is not a refusal is a failure.
            connection.send(("failed", traceback.format_exc()))


class Child:
    """A process that runs cases, started anew when it dies or hangs."""

    def __init__(self, folder: str, seed: int) -> None:
        self._arguments = (folder, seed)
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=worker, args=(other, *self._arguments), daemon=True)
        self._process.start()
        other.close()
        self._pipe.recv()  # Imports take a while on a busy machine, and are no case.

    def run(self, form: str, number: int | str) -> tuple[str, str]:
        """What came of a case, and the details of a failure; a hostile file is given by its path in place of the number."""
        try:
            self._pipe.send((form, number))
            if self._pipe.poll(PATIENCE):
                return self._pipe.recv()
            outcome = ("failed", f"no answer within {PATIENCE:g} seconds\n")
        except (EOFError, OSError):
            self._process.join()
            outcome = ("failed", f"the process died with exit code {self._process.exitcode}\n")
        self.stop()
        self._start()
        return outcome

    def stop(self) -> None:
        """End the process, politely if it listens."""
        with suppress(OSError):
            self._pipe.send(None)
        self._process.join(5)
        self._process.kill()
        self._process.join()
        self._pipe.close()


def fuzz(seconds: float, seed: int, forms: list[str], case: int | None) -> int:
    """Run cases by turns over the forms; return the number of failures."""
    counts: dict[str, Counter[str]] = {form: Counter() for form in (HOSTILE, *forms)}
    with tempfile.TemporaryDirectory(prefix="robustphase-fuzz-") as folder:
        child = Child(folder, seed)
        try:
            if case is None and all(map(installed, PACKAGES)):
                for make in CORPUS:
                    place = Path(folder) / "hostile"
                    place.mkdir()
                    outcome, details = child.run(HOSTILE, str(make(place)))
                    shutil.rmtree(place)
                    counts[HOSTILE][outcome] += 1
                    if outcome == "failed":
                        print(f"\nFAILED: {make.__name__}\n{details}", flush=True)
                # What it has taken for them is not all given back.
                child.stop()
                child = Child(folder, seed)
            began, number = time.monotonic(), 0 if case is None else case
            while time.monotonic() - began < seconds:
                for form in forms:
                    outcome, details = child.run(form, number)
                    counts[form][outcome] += 1
                    if outcome == "failed":
                        print(f"\nFAILED: --seed {seed} --only {form!r} --case {number}\n{details}", flush=True)
                if case is not None:
                    break
                number += 1
        finally:
            child.stop()
    names = ("refused", "same", "changed", "failed")
    print(f"{'form':22s} {'cases':>7s} " + " ".join(f"{name:>8s}" for name in names))
    for form, count in counts.items():
        print(f"{form:22s} {sum(count.values()):7d} " + " ".join(f"{count[name]:8d}" for name in names))
    return sum(count["failed"] for count in counts.values())


def run(seconds: float = 600.0, seed: int = 0) -> None:
    """All forms; any failure ends it with exit code 1."""
    if failures := fuzz(seconds, seed, [form for form in FORMS if installed(form)], None):
        raise SystemExit(f"{failures} failures")
    print("no failures")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz_files", description="Fuzz the readers of files.")
    parser.add_argument("seconds", type=float, nargs="?", default=30.0, help="how long (default: 30)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--only", choices=list(FORMS), help="one form")
    parser.add_argument("--case", type=int, help="one case")
    chosen = parser.parse_args(arguments)
    forms = [form for form in ([chosen.only] if chosen.only else FORMS) if installed(form)]
    failures = fuzz(chosen.seconds, chosen.seed, forms, chosen.case)
    print("no failures" if failures == 0 else f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
