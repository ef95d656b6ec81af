"""Check that the source archive holds every file of the repository: ``python .ci/archive.py dist/*.tar.gz``; needs git."""

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(archive: str) -> None:
    """Compare names; exit with those that are missing."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        print("no repository to compare the archive with")
        return
    with tarfile.open(archive) as file:
        held = {member.name.partition("/")[2] for member in file.getmembers() if member.isfile()}
    missing = sorted(name for name in listed.split("\0") if name and name not in held and (ROOT / name).exists())
    if missing:
        sys.exit(f"{archive} lacks {len(missing)} files of the repository: {', '.join(missing[:10])}")
    print(f"{archive} holds all {listed.count(chr(0))} files of the repository")


if __name__ == "__main__":
    main(sys.argv[1])
