"""Optional libraries, imported where a file needs them and not before."""

from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

from proxmargin.files.errors import DataError

__all__ = ["FILES", "how_to_install", "pandas", "pyarrow"]

# what the extra "files" installs
FILES = ("pandas", "pyarrow")
# what run.py leaves in an environment that it made
RECORD = "run-py.json"


def pandas() -> Any:
    """The pandas module."""
    return _optional("pandas")


def pyarrow(submodule: str | None = None) -> Any:
    """The pyarrow module, or one of its submodules."""
    return _optional("pyarrow" if submodule is None else f"pyarrow.{submodule}")


def how_to_install() -> str:
    """The command that brings the libraries of `FILES` into the environment that runs this.

    It names them, and not an extra of this package: that would be looked for on the package index,
    whatever place the package itself came from.
    """
    run = Path(__file__).parents[3] / "run.py"
    if (Path(sys.prefix) / RECORD).exists() and run.exists():
        return shlex.join(["python3", str(run), "install", "files"])
    return shlex.join(["pip", "install", *FILES])


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise DataError(
            f"Reading this file needs {library}, which is not installed: {how_to_install()}"
        ) from error
