"""What fits allocate beside the data: a small multiple of their size, whatever their form."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from proxmargin import (
    L2SVC,
    SVC,
    ElasticNetSVC,
    HuberizedSVC,
    MulticlassSVC,
    SparseLogisticRegression,
)
from proxmargin.data.designs import as_design, standardized
from proxmargin.solvers.augmented.block import ColumnClassPairs, CurvedSamples, DenseBlock

# times the size of the data
MOST = 2.5
# bytes that there is room for beside any data: small arrays of samples and classes, blocks
ROOM = 6_000_000

FORMS = {"dense": np.ascontiguousarray, "by columns": np.asfortranarray, "sparse": sparse.csr_array}


def size_of(X: Any) -> int:
    """Of the data in float64, in which working sets are copied."""
    wide = X.astype(np.float64)
    parts = (wide.data, wide.indices, wide.indptr) if sparse.issparse(X) else (wide,)
    return sum(part.nbytes for part in parts)


def peak_of(act: Any) -> int:
    """Bytes allocated at most at a time."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        act()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def samples(form: str, dtype: Any, classes: int, count: int = 8000, p: int = 250) -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count, p)).astype(dtype)
    if form == "sparse":
        X[rng.random(X.shape) < 0.7] = 0.0
    scores = X @ rng.standard_normal((p, classes))
    y = (scores / scores.std() + rng.standard_normal(scores.shape)).argmax(axis=1)
    return FORMS[form](X), y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize(
    "model",
    [
        ElasticNetSVC(alpha=1e-3),
        HuberizedSVC(alpha=1e-3),
        SparseLogisticRegression(alpha=1e-3),
        L2SVC(),
        SVC(),
        MulticlassSVC(penalty="l1"),
        MulticlassSVC(penalty="l2"),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'penalty', '')}",
)
@pytest.mark.slow
def test_a_fit_allocates_little_beside_its_data(model: Any, form: str, dtype: Any) -> None:
    X, y = samples(form, dtype, 3 if isinstance(model, MulticlassSVC) else 2)
    model.set_params(time_limit=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:400], y[:400])  # compiles
        peak = peak_of(lambda: model.fit(X, y))
    assert peak <= MOST * size_of(X) + ROOM, peak / size_of(X)


@pytest.mark.parametrize(
    "form", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array]
)
def test_narrowed_data_are_some_columns_in_the_form_of_all(form: Any) -> None:
    rng = np.random.default_rng(3)
    X, index = rng.standard_normal((9, 6)) * (rng.random((9, 6)) < 0.7), np.array([4, 0, 3])
    plain = as_design(form(X))
    for design in (plain, standardized(plain, np.full(9, 1 / 9))):
        part, expected = design.narrowed(index), design.columns(index)
        np.testing.assert_allclose(part.scores(np.eye(3)), expected.scores(np.eye(3)), atol=1e-15)
        assert design.narrowed(index) is part
        if sparse.issparse(form(X)):
            assert part.stored.base.matrix.format == form(X).format


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_dense_columns_are_new_and_in_the_order_asked_for(order: Any, kind: Any) -> None:
    X, _ = samples("dense", kind, 2, 200, 30)
    index = np.array([3, 0, 29])
    for design in (as_design(X), as_design(np.asfortranarray(X)), as_design(sparse.csc_array(X))):
        found = design.dense_columns(index, order)
        assert found.flags[f"{order}_CONTIGUOUS"]
        assert found.dtype == np.float64
        assert not np.shares_memory(found, X)
        np.testing.assert_array_equal(found, X[:, index])


def circle(part: Any) -> list[Any]:
    return [part]


def test_columns_that_are_replaced_do_not_wait_for_the_garbage_collector() -> None:
    """What is made of a part of the data refers to it, and it to that."""
    X, _ = samples("dense", np.float64, 2, 4000, 100)
    design = as_design(X)

    def parts() -> None:
        for last in range(50, 99, 8):
            part = design.columns(np.arange(last))
            part.remembered(circle)
            del part

    assert peak_of(parts) <= 1.5 * size_of(X)  # one part and a block of the next


@pytest.mark.parametrize("samples_live", [7, 900])
def test_curvature_by_blocks_is_that_of_all_samples(samples_live: int, monkeypatch: Any) -> None:
    rng = np.random.default_rng(1)
    block = DenseBlock(rng.standard_normal((1000, 6)))
    masses = rng.random((1000, 4)) * (rng.random((1000, 4)) < 0.9)
    masses[:, :2] += 0.1
    samples = np.sort(rng.permutation(1000)[:samples_live])
    live = CurvedSamples(samples, masses[samples] > 0, rng.random(samples_live))
    pairs = ColumnClassPairs(rng.random((7, 4)) < 0.8)
    expected = np.zeros((pairs.size, pairs.size))
    rows = np.column_stack([block.matrix, np.ones(1000)])
    for i, inside, weight in zip(samples, live.inside.astype(float), live.weights, strict=True):
        bend = weight * (np.diag(inside) - np.outer(inside, inside) / inside.sum())
        x = rows[i][pairs.columns]
        expected += np.outer(x, x) * bend[np.ix_(pairs.classes, pairs.classes)]
    for crowded in (0.0, np.inf):
        monkeypatch.setattr(DenseBlock, "crowded", crowded)
        found = np.tril(block.curvature(live, pairs))
        np.testing.assert_allclose(found, np.tril(expected), atol=1e-10)
