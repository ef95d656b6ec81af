"""A store and docs of their own, and a benchmark to fill them."""

from __future__ import annotations

import pytest
from benchmarks import history, registry, render, stale, store
from benchmarks.registry import Benchmark

PAGE, PICTURE = "_generated/trial.md", "_static/trial.svg"


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """Folders of docs and results; one benchmark, whose figures speak of the means."""
    trial = Benchmark("trial", "Does it work?", 1.5, ("means",), (PAGE,), (PICTURE,))
    folder = tmp_path / "docs"
    for name in ("_generated", "_static"):
        (folder / name).mkdir(parents=True)
    for module in (store, render, stale):
        monkeypatch.setattr(module, "DOCS", folder)
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(registry, "_ALL", (trial,))
    for module in (registry, store, render, stale, history):
        monkeypatch.setattr(module, "BENCHMARKS", {"trial": trial})
    # The module of the benchmark: one without a way of its own to write pages.
    monkeypatch.setattr(render, "import_module", lambda name: registry)
    return folder


@pytest.fixture
def engine(monkeypatch):
    """Pretend that the engine is another."""

    def set_engine(digest):
        for module in (store, stale):
            monkeypatch.setattr(module, "engine_digest", lambda rooms: digest)

    set_engine("a" * 12)
    return set_engine
