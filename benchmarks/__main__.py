"""Run the benchmarks named on the command line, or all of them."""

from __future__ import annotations

import sys
from importlib import import_module

ALL = ("passes", "means", "start", "recovery", "dashboard")


def main(names: list[str]) -> None:
    for name in names or ALL:
        import_module(f"benchmarks.{name}").run()


if __name__ == "__main__":
    main(sys.argv[1:])
