"""Add to the pins in a file the SHA-256 sums of all archives of those versions: ``python .ci/hashes.py constraints.txt``.

The sums are asked of the package index that pip uses. All archives of a version count, so that one file serves every platform.
"""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote

from pip._internal.models.index import PyPI
from pip._internal.network.session import PipSession
from pip._vendor.packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from pip._vendor.packaging.version import Version

ARCHIVE = re.compile(r"""(?P<name>[^/"']+)#sha256=(?P<sum>[0-9a-f]{64})""")
PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)")


def sums(session: PipSession, name: str, version: str) -> list[str]:
    """The sums of all archives of a version, sorted."""
    index = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
    answer = session.get(f"{index}/{canonicalize_name(name)}/", headers={"Accept": "text/html"})
    answer.raise_for_status()
    found = set()
    for file in ARCHIVE.finditer(answer.text):
        archive = unquote(file["name"])
        parse = parse_wheel_filename if archive.endswith(".whl") else parse_sdist_filename
        try:
            if parse(archive)[1] == Version(version):
                found.add(file["sum"])
        except ValueError:  # An archive of another age.
            continue
    if not found:
        sys.exit(f"the index has no archive of {name} {version}.")
    return sorted(found)


def main(path: Path) -> None:
    """Rewrite the file."""
    session = PipSession(retries=3)
    session.verify = os.environ.get("PIP_CERT", session.verify)
    lines = []
    for pin in PIN.finditer(path.read_text("utf-8")):
        hashes = sums(session, pin["name"], pin["version"])
        lines.append(" \\\n".join([pin[0], *(f"    --hash=sha256:{value}" for value in hashes)]))
    path.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
