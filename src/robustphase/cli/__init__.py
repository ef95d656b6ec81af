"""The command line: ``robustphase demo | simulate | fit | compare | reproduce | plan``.

One module per command, each a thin layer over a function of the library. What they share has a module of its own:

* ``app`` is the group, which loads a command when it is asked for, turns whatever happens inside it into one sentence and an
  honest exit code, and lays out ``--help``;
* ``options`` reads what is typed (a level, a picture's shape, a start) and holds the options that several commands have;
* ``terminal`` is what a person sees, ``outputs`` what is left on the disk: checked before the work, written atomically.

Exit codes: 0 done and converged, 3 finished without converging, 4 finished but the data contradict the model, 2 bad usage,
1 any other error, 130 interrupted.
Only :func:`main` works without the ``cli`` extra: it says how to install it.
"""

from __future__ import annotations

import sys

from robustphase.cli.exit_codes import INTERRUPTED

TYPE_CHECKING = False  # That of typing, without its import: see `main`.
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

#: What the command line needs beyond the default install.
NEEDED = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    All that takes time to import is imported in here, so that Ctrl-C is an interruption from the first moment on and no
    traceback.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program. Default: the arguments of this process.

    Returns
    -------
    int
        0 done and converged, 3 finished without converging, 4 finished but the data contradict the model, 2 bad usage, 1 any
        other error, 130 interrupted.
    """
    try:
        missing = [name for name in NEEDED if not _installed(name)]
        if missing:
            print(
                f"error: the command line needs {' and '.join(missing)}; install it with: pip install 'robustphase[cli]'",
                file=sys.stderr,
            )
            return 1
        from robustphase.cli.app import run

        return run(arguments)
    except KeyboardInterrupt:  # While the rest was imported: commands answer for themselves.
        print("interrupted; nothing was written", file=sys.stderr)
        return INTERRUPTED


def _installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
