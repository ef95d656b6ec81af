"""Measure, and write what was measured.

python -m benchmarks                    performance ratios, measured side by side
python -m benchmarks list               all benchmarks: question, minutes, pages
python -m benchmarks NAME ...           run these
python -m benchmarks NAME --option ...  run one with its options (--help shows them)
python -m benchmarks render [NAME ...]  write pages from what is stored
python -m benchmarks stale [--run]      pages that are older than their engine
python -m benchmarks history [NAME ...] figures of earlier runs, and which became worse
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from benchmarks import history, stale
from benchmarks.options import call
from benchmarks.registry import BENCHMARKS, PERFORMANCE, listing
from benchmarks.render import render_all


def main(arguments: Sequence[str]) -> int:
    """What the command line asks for."""
    first, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if first in ("-h", "--help"):
        print(__doc__)
    elif first == "list":
        print(listing())
    elif first == "render":
        render_all(_known(rest))
    elif first == "stale":
        return stale.main(rest)
    elif first == "history":
        return history.main(_known(rest))
    elif any(word.startswith("-") for word in rest):
        run([first], rest)
    else:
        run(arguments or PERFORMANCE)
    return 0


def run(names: Sequence[str], options: Sequence[str] = ()) -> None:
    """Run benchmarks."""
    for name in _known(names):
        call(import_module(f"benchmarks.{name}").run, name, options)


def _known(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in BENCHMARKS:
            raise SystemExit(f"there is no benchmark {name!r}; python -m benchmarks list shows them all")
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
