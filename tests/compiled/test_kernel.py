"""Kernels called by kernels: the same results, and code that is optimised only where it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from proxmargin.compiled import library
from proxmargin.compiled.cache import njit
from tests.compiled.test_library import told

numba = pytest.importorskip("numba")
kernel = pytest.importorskip("proxmargin.compiled.kernel")


class Data(NamedTuple):
    values: Any
    scale: float


@njit(nogil=True)
def _sum(data):  # type: ignore[no-untyped-def]
    if data.values.size == 0:
        raise ValueError("no values")
    total = 0.0
    for value in data.values:
        total += value
    return data.scale * total


@njit(nogil=True)
def mean(data):  # type: ignore[no-untyped-def]
    """With an array of its own, and another kernel."""
    whole = np.zeros(1)
    whole[0] = _sum(data)
    return whole / data.values.size


def test_a_kernel_can_be_called_by_python_and_by_kernels() -> None:
    for values in (np.arange(5.0), np.arange(5)):
        data = Data(values, 2.0)
        np.testing.assert_array_equal(mean(data), [4.0])
        assert _sum(data) == 20.0


def test_errors_in_kernels_of_kernels_are_raised() -> None:
    for called in (_sum, mean):
        with pytest.raises(ValueError, match="no values"):
            called(Data(np.zeros(0), 1.0))


def test_what_kernels_call_is_not_made_machine_code() -> None:
    mean(Data(np.arange(3.0, dtype=np.float32), 1.0))
    assert len(_sum.twin.overloads) > len(_sum.overloads)
    for compiled in _sum.twin.overloads.values():
        name = compiled.fndesc.llvm_func_name
        assert not compiled.library.codegen._engine.is_symbol_defined(name)


def test_what_numba_brings_is_made_machine_code_with_the_kernel_alone() -> None:
    @njit(nogil=True)
    def middle(x):  # type: ignore[no-untyped-def]
        return np.median(x)

    assert middle(np.arange(3.0)) == 1.0
    codegen = middle.targetctx.codegen()
    (compiled,) = middle.overloads.values()
    linked = {each.name: type(each) for each in compiled.library._linking_libraries}
    del linked["nrt"]  # the counts of references, which is there before any kernel
    assert linked
    assert set(linked.values()) == {kernel.Lowered}
    assert not isinstance(codegen.create_library("next"), kernel.Lowered)


def test_functions_of_plain_numba_can_be_called_by_kernels_and_call_them() -> None:
    @numba.njit
    def risen(x):  # type: ignore[no-untyped-def]
        return x + 1.0

    @njit(nogil=True)
    def middle(x):  # type: ignore[no-untyped-def]
        return np.median(risen(x))

    @numba.njit
    def whole(x):  # type: ignore[no-untyped-def]
        return middle(x) + np.median(x)

    x = np.arange(3.0)
    assert middle(x) == 2.0
    np.testing.assert_array_equal(risen(x), x + 1.0)
    assert whole(x) == 3.0


CACHED = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
from proxmargin.compiled import digest
if "edited" in sys.argv:
    digest.of_sources = lambda: "another"
from proxmargin.compiled.products.compensated import add
print(add(1.0, 0.0, 2.0))
"""


@pytest.mark.slow
def test_what_is_kept_on_disk_holds_until_a_kernel_is_edited(tmp_path: Path) -> None:
    settings = {"NUMBA_CACHE_DIR": str(tmp_path), "PROXMARGIN_KERNELS": "numba"}
    compiling = "compiling kernels for their first use" in told(CACHED, **settings)[0]
    again, edited = told(CACHED, **settings), told(CACHED, "edited", **settings)
    assert compiling
    assert again == ["(3.0, 0.0)"]
    assert "compiled.build` compiles" in edited[0]


def test_code_of_a_loss_of_the_users_own_is_not_kept(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    kernel._say.cache_clear()

    @njit(cache=True, nogil=True)
    def scaled(data):  # type: ignore[no-untyped-def]
        return data.scale

    assert scaled(Data(np.zeros(1), 2.0)) == 2.0
    assert list(tmp_path.rglob("*.nbc")) == []
    assert "for a loss of your own" in caplog.text


def test_another_numba_compiles_nothing(monkeypatch) -> None:
    monkeypatch.setattr(library, "version", lambda name: "0.1.0")
    assert not library.has_numba.__wrapped__()
