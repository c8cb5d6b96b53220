"""Optional libraries, imported where a file needs them and not before."""

from __future__ import annotations

import importlib
from typing import Any

from proxmargin.files.errors import DataError


def pandas() -> Any:
    """The pandas module."""
    return _optional("pandas")


def pyarrow(submodule: str | None = None) -> Any:
    """The pyarrow module, or one of its submodules."""
    return _optional("pyarrow" if submodule is None else f"pyarrow.{submodule}")


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise DataError(
            f"Reading this file needs {library}, which is not installed: "
            'pip install "proxmargin[files]"'
        ) from error
