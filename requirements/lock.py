"""Write the versions that continuous integration installs, each with the hashes of its files.

    python3 run.py lock              after a change of the dependencies in pyproject.toml
    python3 run.py lock --upgrade    the newest version of everything

lock.txt holds the newest versions, for every Python and platform. For Python 3.11 on Linux
oldest.txt holds the lower bounds of pyproject.toml, clients.txt the libraries that people use with
this one, and release.txt what builds and checks a release.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
COMMON = """
--group build --python-version 3.11 --generate-hashes --no-config --system-certs --quiet
--custom-compile-command
"""
FILES = {
    "lock.txt": """--extra test --extra lint --extra browser --extra docs
        --universal --fork-strategy fewest""",
    "oldest.txt": "--extra test --resolution lowest-direct --python-platform linux",
    "release.txt": "--extra release --python-platform linux",
    "clients.txt": "--extra test --extra clients --python-platform linux",
}


def main(arguments: list[str]) -> int:
    """The first status of uv that is not zero."""
    statuses = (
        compiled(HERE / name, *options.split(), *arguments) for name, options in FILES.items()
    )
    return next(filter(None, statuses), 0)


def compiled(file: Path, *options: str) -> int:
    """Write ``file``, where versions that it holds stay if they fit."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml"]
    words = [*command, *COMMON.split(), "python3 run.py lock", *options, "--output-file", str(file)]
    return subprocess.call(words, cwd=HERE.parent, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
