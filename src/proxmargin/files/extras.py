"""Optional libraries of data files: without one, files of its kind cannot be read."""

from __future__ import annotations

from typing import Any

from proxmargin.files.errors import DataError
from proxmargin.runtime.optional import optional

__all__ = ["pandas", "pyarrow"]


def pandas() -> Any:
    """The pandas module."""
    return _needed("pandas")


def pyarrow(submodule: str | None = None) -> Any:
    """The pyarrow module, or one of its submodules."""
    return _needed("pyarrow" if submodule is None else f"pyarrow.{submodule}")


def _needed(name: str) -> Any:
    try:
        return optional(name, "Reading this file")
    except ImportError as error:
        raise DataError(str(error)) from error
