"""What was measured: one file of JSON lines for each benchmark, ``benchmarks/results/NAME.jsonl``.

Every row says what it was measured with: commit, date, engine digest, versions, machine. Rows belong to a page, and there to a
part of it; a part that is measured again replaces what was there, and rows of the same page that another engine has measured
go. Rows without an engine are of other software, to which that does not matter. ``figure`` rows are the history: they stay.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks import stamp
from benchmarks.digest import engine_digest
from benchmarks.registry import BENCHMARKS, Benchmark
from robustphase.atomic import write_text
from robustphase.report.collecting import software_versions

RESULTS = Path(__file__).with_name("results")
DOCS = Path(__file__).parents[1] / "docs"
Row = dict[str, Any]


def provenance(benchmark: Benchmark) -> Row:
    """What a row measured now is measured with; nothing that tells which machine it was."""
    blas = sorted({f"{one['internal_api']} {one['version']}" for one in threadpool_info() if one["user_api"] == "blas"})
    return {
        "commit": stamp.COMMIT,
        "date": stamp.today(),
        "engine": engine_digest(benchmark.rooms),
        "versions": software_versions(),
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "blas": ", ".join(blas)},
    }


def stored(name: str) -> list[Row]:
    """All rows of a benchmark, oldest first."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def keep(name: str, page: str, rows: Iterable[Mapping[str, Any]], *, part: str = "", foreign: bool = False) -> None:
    """Put the rows of a part of a page in the place of those that were there.

    ``foreign`` rows are of other software: they stay when the engine changes.
    """
    head = provenance(BENCHMARKS[name])

    def stays(row: Row) -> bool:
        if "figure" in row or row.get("page") != page:
            return True
        # Other software has measured no engine of ours, and so takes none away.
        return row["part"] != part and (foreign or row["engine"] in ("", head["engine"]))

    kept = [row for row in stored(name) if stays(row)]
    own = head | {"engine": ""} if foreign else head
    _write(name, kept + [{"page": page, "part": part, **row, **own} for row in rows])


def keep_picture(name: str, picture: str) -> None:
    """Note with what a picture, a file below docs, was drawn."""
    keep(name, picture, [{"picture": picture_digest(DOCS / picture)}])


def picture_digest(path: Path) -> str:
    """Twelve hexadecimal digits that change with the content of a picture."""
    return sha256(path.read_bytes()).hexdigest()[:12]


def keep_figures(name: str, figures: Mapping[str, float]) -> None:
    """Append figures to the history of a benchmark."""
    head = provenance(BENCHMARKS[name])
    _write(name, stored(name) + [{"figure": key, "value": float(value), **head} for key, value in figures.items()])


def _write(name: str, rows: Iterable[Row]) -> None:
    RESULTS.mkdir(exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False, default=_plain) for row in rows]
    write_text(RESULTS / f"{name}.jsonl", "".join(f"{one}\n" for one in lines))


def _plain(value: object) -> object:
    """Numbers of NumPy as JSON has them."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be kept as JSON")
