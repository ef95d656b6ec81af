"""``python -m robustphase.experiments.reproduce``: run the experiments, print the verdicts, write the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from robustphase.atomic import write_text
from robustphase.experiments.reproduce import CLAIMS, ReproductionInterrupted, reproduce, write_page


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if nothing fails, 1 if something does, 2 for bad usage, 130 if interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m robustphase.experiments.reproduce", description="Put the paper's claims to the test."
    )
    parser.add_argument("claims", nargs="*", metavar="CLAIM", help=f"which claims (default: all): {', '.join(CLAIMS)}")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller dimensions: minutes, not an hour")
    parser.add_argument("--folder", type=Path, help="where to keep the verdicts")
    parser.add_argument("--resume", action="store_true", help="take over the verdicts that the folder already has")
    parser.add_argument("--workers", type=int, help="processes (default: one per processor)")
    parser.add_argument("--page", type=Path, help="write the verdicts as a table in Markdown to this file")
    chosen = parser.parse_args(arguments)
    if chosen.resume and chosen.folder is None:
        parser.error("--resume needs the --folder that the verdicts are in")
    try:
        verdicts = reproduce(
            chosen.claims or None,
            quick=chosen.quick,
            folder=chosen.folder,
            progress=lambda sentence: print(sentence, flush=True),
            workers=chosen.workers,
            resume=chosen.resume,
        )
    except ReproductionInterrupted as interrupt:
        print(interrupt, file=sys.stderr)
        return 130
    except ValueError as error:
        parser.error(str(error))
    page = write_page(verdicts, heading=f"{'Quick' if chosen.quick else 'Full'} version.")
    if chosen.page is not None:
        write_text(chosen.page, page)
    print(f"\n{page}")
    return 1 if any(verdict.verdict == "fails" for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
