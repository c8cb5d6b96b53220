"""Products and Gram matrices of every kind of data against array formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_array

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import gram, products
from proxmargin.compiled.paths.candidates import Candidates, load
from proxmargin.compiled.paths.state import COLUMNS_CACHED, COUNTS
from proxmargin.compiled.paths.stores import ColumnCache, Dense
from proxmargin.compiled.products.columns import Compressed

pytestmark = pytest.mark.slow  # the kernels are compiled for these tests alone

N, P = 23, 7
MEMBERS = np.array([5, 0, 3, 6])
STORES = ["rows", "columns", "cached", "compressed"]


@njit(cache=True, nogil=True)
def every_product(store, column_cache, candidates, theta, steps, inverse, counts):  # type: ignore[no-untyped-def]
    """All and some products with a dual point, those of the candidates, and a sum of columns."""
    p, n = inverse.size, theta.size
    whole, part, total = np.zeros(p), np.zeros(p), np.empty(n)
    index = np.arange(p)
    for s in range(p):
        load(store, candidates, s, s, np.full(n, 1.0 / n), inverse, True)
    products.pull_all(store, theta, inverse, whole)
    products.some(store, column_cache, index, p, theta, inverse, part, counts)
    products.pull(store, candidates, p, theta, inverse)
    products.combine(store, candidates, index, p, steps, inverse, total)
    return whole, part, total


@njit(cache=True, nogil=True)
def every_gram(store, candidates, members, first, second, totals, inverse, out):  # type: ignore[no-untyped-def]
    """The matrix of three members, with a fourth, and with other curvatures, one after another."""
    m = members.size
    for s in range(inverse.size):
        load(store, candidates, s, s, np.full(first.size, 1.0 / first.size), inverse, True)
    gram.form(store, candidates, members, m - 1, first, totals[0], inverse, out[0])
    out[1] = out[0]
    gram.append(store, candidates, members, m, first, totals[0], inverse, out[1])
    out[2] = out[1]
    gram.revise(
        store, candidates, members, m, second - first, totals[0], totals[1], inverse, out[2]
    )


def store_of(X: np.ndarray, kind: str) -> Any:
    if kind == "compressed":
        data = csc_array(X)
        return Compressed(N, data.data, data.indices, data.indptr)
    lines = X if kind == "rows" else np.ascontiguousarray(X.T)
    return Dense(lines, kind == "rows", kind == "cached")


def empty_candidates(cached: bool) -> Candidates:
    """A candidate for each feature, in their order."""
    order = np.arange(P)
    cache = np.empty((P, N)) if cached else np.empty((0, 0))
    rows = np.empty((MEMBERS.size, N)) if cached else np.empty((0, 0))
    coef, slope, mean, guess, lag, average = np.zeros((6, P))
    return Candidates(
        order, order, order, np.ones(P), coef, slope, mean, order, guess, lag, cache, rows, average
    )


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random((N, P)) < 0.5, rng.standard_normal((N, P)), 0.0)


@pytest.mark.parametrize("kind", STORES)
def test_products_are_those_of_arrays(kind: str, X: np.ndarray, rng: np.random.Generator) -> None:
    theta, steps, inverse = rng.standard_normal(N), rng.standard_normal(P), rng.uniform(1, 2, P)
    theta -= theta.mean()  # as cached columns are centred
    candidates, counts = empty_candidates(kind == "cached"), np.zeros(COUNTS, np.int64)
    column_cache = ColumnCache(
        np.empty((3, N)), np.full(3, -1), np.full(P, -1)
    )  # fewer than there are features
    whole, part, total = every_product(
        store_of(X, kind), column_cache, candidates, theta, steps, inverse, counts
    )
    scaled = X * inverse
    for products_found in (whole, part, candidates.slope):
        np.testing.assert_allclose(products_found, scaled.T @ theta, atol=1e-13)
    centre = scaled.mean(axis=0) if kind == "cached" else np.zeros(P)
    np.testing.assert_allclose(total, (scaled - centre) @ steps, atol=1e-13)
    assert counts[COLUMNS_CACHED] == (P if kind == "rows" else 0)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("kind", STORES)
def test_gram_matrices_are_those_of_arrays(
    kind: str, free: bool, X: np.ndarray, rng: np.random.Generator
) -> None:
    first, inverse = rng.uniform(0, 1, N), rng.uniform(1, 2, P)
    second = np.where(rng.random(N) < 0.4, rng.uniform(0, 1, N), first)
    first[:4] = second[2:6] = 0.0
    totals = np.array([first.sum(), second.sum()]) if free else np.zeros(2)
    candidates, m = empty_candidates(kind == "cached"), MEMBERS.size
    found = np.full((3, m, m), np.nan)
    every_gram(store_of(X, kind), candidates, MEMBERS, first, second, totals, inverse, found)
    columns = (X * inverse)[:, MEMBERS]
    if kind == "cached":
        columns = columns - columns.mean(axis=0)
    for matrix, bends, size in zip(found, (first, first, second), (m - 1, m, m), strict=True):
        mean = bends @ columns / bends.sum() if free else np.zeros(m)
        exact = ((columns - mean).T * bends) @ (columns - mean)
        np.testing.assert_allclose(matrix[:size, :size], exact[:size, :size], atol=1e-13)
    if free:
        np.testing.assert_allclose(candidates.average[:m], mean, atol=1e-13)
