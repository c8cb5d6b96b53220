"""Kernels are compiled by Numba alone where it lacks what those of the package are built on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from proxmargin.compiled import cache
from proxmargin.compiled.kernel import Kernel

FIT = """
import importlib, sys, types
import numba.experimental  # and with it what Numba itself would import later
where, name = "{where}".rpartition(".")[::2]
whole = importlib.import_module(where)
part = types.ModuleType(where)
vars(part).update((key, value) for key, value in vars(whole).items() if key != name)
sys.modules[where] = part
setattr(numba.core, where.rpartition(".")[2], part)
import numpy as np
from proxmargin.functions.projections import capped_simplex
from proxmargin.compiled.clock import clock
before = clock()
print(capped_simplex(np.ones(2), 1.0, np.ones(2)), clock() > before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        "numba.core.codegen.JITCodeLibrary",
        "numba.core.compiler.CompileResult",
        "numba.core.targetconfig.ConfigStack",
        "numba.core.event.register",
    ],
)
def test_a_numba_without_these_parts_computes_the_same(where: str, tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", FIT.format(where=where)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PROXMARGIN_KERNELS": "numba"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout.strip() == "[0.5 0.5] True"
    assert told.stderr.count("every process compiles its kernels anew") == 1
    assert where.rpartition(".")[2] in told.stderr
    assert list(tmp_path.glob("*/*.nbc")) == []


def test_a_kernel_of_numba_alone_takes_the_options_of_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "_kind_of_kernel", lambda kept: None)

    @cache.njit(cache=True, nogil=True, allocates=False)
    def risen(x):  # type: ignore[no-untyped-def]
        return x + 1.0

    assert type(risen) is type(numba.njit(lambda x: x))
    assert not isinstance(risen, Kernel)
    assert risen(1.0) == 2.0
