"""Arrays in mapped files."""

from __future__ import annotations

import errno
import gc
import os
import tempfile

import numpy as np
import pytest

import proxmargin as pm
from proxmargin.runtime import memory as scratch
from tests.shared_data import clouds


@pytest.fixture
def everything_mapped(monkeypatch) -> None:
    monkeypatch.setattr(scratch, "LEAST_BYTES", 1)


def test_a_mapped_array_is_an_array(everything_mapped, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    values = scratch.mapped(np.arange(12.0).reshape(6, 2))
    assert type(values) is np.ndarray
    assert values.flags.writeable
    assert values.flags.c_contiguous
    np.testing.assert_array_equal(values, np.arange(12.0).reshape(6, 2))
    assert not list(tmp_path.iterdir())  # files have no name, and go with their arrays


def test_what_is_made_beside_a_mapped_array_is_mapped(everything_mapped) -> None:
    here, there = np.ones((5, 1)), scratch.mapped(np.ones((5, 1)))
    for values, expected in ((here, False), (there, True), (there[:, 0], True), (there[1:], True)):
        assert scratch.is_mapped(values) is expected
        assert scratch.is_mapped(scratch.empty_beside(values)) is expected
        assert scratch.is_mapped(scratch.copied(values)) is expected
        assert scratch.is_mapped(scratch.beside(values, np.zeros(3))) is expected
        assert scratch.empty_beside(values).shape == values.shape
    assert not scratch.is_mapped(there + 1.0)


def test_views_outlive_the_array(everything_mapped) -> None:
    view = scratch.mapped(np.arange(100_000.0))[::2]
    gc.collect()
    assert view.sum() == np.arange(100_000.0)[::2].sum()


def test_small_arrays_stay_in_memory() -> None:
    values = np.ones(1000)
    assert scratch.mapped(values) is values
    assert not scratch.is_mapped(scratch.mapped_empty((10, 3)))


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space is not reserved here")
def test_a_full_disk_is_an_error(everything_mapped, monkeypatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"temporary folder .*No space left.*set TMPDIR"):
        scratch.mapped(np.ones(10))


def test_space_is_reserved_where_the_system_has_no_call_for_it(
    everything_mapped, monkeypatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(scratch, "LEAST_BYTES", 64)
    np.testing.assert_array_equal(scratch.mapped(np.arange(25.0)), np.arange(25.0))


def test_a_copy_is_no_view(everything_mapped, monkeypatch) -> None:
    whole = scratch.mapped(np.arange(100.0))
    monkeypatch.setattr(scratch, "LEAST_BYTES", 400)
    for part in (whole[:10], whole):
        copy = scratch.copied(part)
        copy[0] = -1.0
        assert whole[0] == 0.0


def test_objects_stay_in_memory(everything_mapped) -> None:
    labels = np.array(["a", 1, None], dtype=object)
    assert scratch.mapped(labels) is labels


@pytest.mark.sampled(2)
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize(
    "model", [pm.HuberizedSVC, pm.SparseLogisticRegression, pm.DWD, pm.SVC, pm.MarginFDA]
)
def test_models_are_the_same_bit_for_bit(
    model: type, standardize: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = clouds(400, 5, apart=0.4)
    weights = np.linspace(0.5, 1.5, 400)
    found = []
    for least in (1 << 26, 1):
        monkeypatch.setattr(scratch, "LEAST_BYTES", least)
        dataset = pm.open_dataset(X, target=y, weight=weights, chunk_rows=64)
        found.append(model(standardize=standardize).fit(dataset))
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)
    assert found[0].certificate_.gap == found[1].certificate_.gap
