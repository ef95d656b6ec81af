"""``python -m robustphase.cli``: the same as ``robustphase``."""

import sys

from robustphase.cli import main

if __name__ == "__main__":
    sys.exit(main())
