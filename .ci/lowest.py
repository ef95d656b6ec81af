"""Print the lowest versions of the dependencies that pyproject.toml allows, one requirement per line."""

import re
import sys
import tomllib
from pathlib import Path

LOWER_BOUND = re.compile(r"([\w-]+)>=([\w.]+)")


def main() -> None:
    """Every dependency must have a lower bound and nothing else, or the lowest version is not known."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    for requirement in project["dependencies"]:
        found = LOWER_BOUND.fullmatch(requirement)
        if found is None:
            sys.exit(f"{requirement!r} in pyproject.toml is not of the form name>=version.")
        print(f"{found[1]}=={found[2]}")


if __name__ == "__main__":
    main()
