"""The svmlight / libsvm text format: ``label index:value ...``, one sample a line."""

from __future__ import annotations

import zlib
from pathlib import Path

import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from proxmargin.files.errors import DataError
from proxmargin.files.matrices import PlainMatrix


def read(path: Path) -> PlainMatrix:
    """The file as a sparse matrix; indices start at 1, or at 0 where the file uses index 0."""
    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OverflowError, EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{path}: not a readable svmlight file (lines of 'label index:value ...', "
            f"indices rising): {str(error).rstrip('.')}."
        ) from error
    return PlainMatrix(str(path), sp.csr_array(X), y, trailing_zeros_implied=True)
