"""The paper's claims as experiments: ``robustphase reproduce``, with its page in the documentation.

``python -m benchmarks.reproduce [--quick]`` writes docs/_generated/reproduce.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.stamp import stamped
from robustphase.atomic import write_text
from robustphase.experiments.reproduce import reproduce, write_page

PAGE = Path(__file__).parents[1] / "docs" / "_generated" / "reproduce.md"


def main(quick: bool) -> None:
    verdicts = reproduce(quick=quick, progress=lambda sentence: print(sentence, flush=True))
    write_text(PAGE, stamped(write_page(verdicts, heading=f"{'Quick' if quick else 'Full'} version.")))


if __name__ == "__main__":
    main("--quick" in sys.argv)
