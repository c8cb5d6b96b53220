"""The log says that kernels are being compiled, once, and not where they are on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIT = (
    "import numpy as np; from proxmargin.functions.projections import capped_simplex as p;"
    "p(np.ones(3), 1.0, np.ones(3)); p(np.ones(3), 1.0, 2.0 * np.ones(3))"
)


@pytest.mark.slow
def test_what_is_compiled_is_said_once_and_kept(tmp_path: Path) -> None:
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PROXMARGIN_KERNELS": "numba"}
    told = [
        subprocess.run(
            [sys.executable, "-c", FIT], env=settings, check=True, capture_output=True, text=True
        ).stderr
        for _ in range(2)
    ]
    assert told[0].count("compiling kernels for their first use") == 1
    assert told[1] == ""
