"""Print what the package needs with all extras, and some dependency groups, one requirement per line: ``names.py GROUP ...``.

For ``pip install --require-hashes``: the package itself, which has no hash, cannot be named there.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))


def group(name: str) -> list[str]:
    """The requirements of a dependency group and of those that it includes."""
    found: list[str] = []
    item: Any
    for item in PYPROJECT["dependency-groups"][name]:
        found += group(item["include-group"]) if isinstance(item, dict) else [item]
    return found


def main(groups: list[str]) -> None:
    """Dependencies, extras, groups."""
    project = PYPROJECT["project"]
    extras = [line for listed in project["optional-dependencies"].values() for line in listed]
    wanted = [*project["dependencies"], *extras, *(line for name in groups for line in group(name))]
    own = project["name"] + "["
    print("\n".join(sorted({line for line in wanted if not line.startswith(own)})))


if __name__ == "__main__":
    main(sys.argv[1:])
