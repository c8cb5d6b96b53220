"""Optional libraries, imported when they are needed."""

from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

__all__ = ["FILES", "RECORD", "how_to_install", "optional"]

# libraries of the extra "files"
FILES = ("pandas", "pyarrow")
# file that run.py writes into an environment that it made
RECORD = "run-py.json"


def optional(name: str, use: str) -> Any:
    """Import a library of `FILES`, or one of its modules.

    Parameters
    ----------
    use : str
        What needs it, as the beginning of the error message.

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
    """The command that installs the libraries of `FILES` into this environment.

    It names them instead of an extra of this package, which pip would look for on the package index
    even if the package was installed from elsewhere.
    """
    run = Path(__file__).parents[3] / "run.py"
    if (Path(sys.prefix) / RECORD).exists() and run.exists():
        return shlex.join(["python3", str(run), "install", "files"])
    return shlex.join(["pip", "install", *FILES])
