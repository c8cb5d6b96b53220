"""Optional libraries, imported where something needs them and not before."""

from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

__all__ = ["FILES", "RECORD", "how_to_install", "optional"]

# what the extra "files" installs
FILES = ("pandas", "pyarrow")
# what run.py leaves in an environment that it made
RECORD = "run-py.json"


def optional(name: str, use: str) -> Any:
    """A library of `FILES`, or one of its modules.

    Parameters
    ----------
    use : str
        What needs it: the start of a sentence.

    Raises
    ------
    ImportError
        With the command that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise ImportError(
            f"{use} needs {library}, which is not installed: {how_to_install()}"
        ) from error


def how_to_install() -> str:
    """The command that brings the libraries of `FILES` into the environment that runs this.

    It names them, and not an extra of this package: that would be looked for on the package index,
    whatever place the package itself came from.
    """
    run = Path(__file__).parents[3] / "run.py"
    if (Path(sys.prefix) / RECORD).exists() and run.exists():
        return shlex.join(["python3", str(run), "install", "files"])
    return shlex.join(["pip", "install", *FILES])
