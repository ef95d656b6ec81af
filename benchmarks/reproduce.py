"""The paper's claims as experiments: ``robustphase reproduce``, with its page in the documentation.

``python -m benchmarks reproduce`` writes the quick version to docs/_generated/reproduce.md, with ``--no-quick`` the full one.
"""

from __future__ import annotations

import sys

from benchmarks.options import call
from benchmarks.render import publish
from robustphase.experiments.reproduce import reproduce, write_page

PAGE = "_generated/reproduce.md"


def run(quick: bool = True) -> None:
    verdicts = reproduce(quick=quick, progress=lambda sentence: print(sentence, flush=True))
    publish(PAGE, write_page(verdicts, heading=f"{'Quick' if quick else 'Full'} version."), seeds=[0, 1])


if __name__ == "__main__":
    call(run, "reproduce", sys.argv[1:])
