"""Products and Gram matrices of every kind of data against array formulas."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csc_array

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import products, state
from proxmargin.compiled.paths.model import (
    _append_to_hessian,
    _form_hessian,
    _revise_hessian,
)
from proxmargin.compiled.paths.products import copy_column
from proxmargin.compiled.paths.state import Candidates, ColumnCache, PathModel, Store, record
from proxmargin.compiled.products.columns import Compressed
from proxmargin.compiled.solvers.nets import Net
from proxmargin.compiled.solvers.quadratic_model import room_for

pytestmark = pytest.mark.slow  # the kernels are compiled for these tests alone

N, P = 23, 7
MEMBERS = np.array([5, 0, 3, 6])
STORES = ["rows", "columns", "copied", "compressed"]


class Data(NamedTuple):
    """What products read of `proxmargin.compiled.paths.state.Data`."""

    store: Any
    weights: Any
    inverse: Any
    free: bool


@njit(nogil=True)
def every_product(data, candidates, theta, steps):  # type: ignore[no-untyped-def]
    """All and some products with a dual point, those of the candidates, and a sum of columns."""
    store, inverse = data.store, data.inverse
    p, n = inverse.size, theta.size
    whole, part, total = np.zeros(p), np.zeros(p), np.empty(n)
    index = np.arange(p)
    for s in range(p):
        copy_column(data, candidates, s, s)
    products.all_products(store, theta, inverse, whole)
    products.some_products(store, index, p, theta, inverse, part)
    products.candidate_products(store, candidates, theta, inverse)
    products.combine(store, candidates, index, p, steps, inverse, total)
    return whole, part, total


@njit(nogil=True)
def every_gram(data, candidates, model, first, second, totals, out):  # type: ignore[no-untyped-def]
    """The matrix of three members, with a fourth, and with other curvatures, one after another."""
    store, inverse, m = data.store, data.inverse, model.members.size
    for s in range(inverse.size):
        copy_column(data, candidates, s, s)
    model.scalars.size, model.scalars.total = m - 1, totals[0]
    model.curvatures[:] = first
    _form_hessian(store, candidates, model, inverse)
    out[0] = model.quadratic.hessian
    model.scalars.size = m
    _append_to_hessian(store, candidates, model, inverse)
    out[1] = model.quadratic.hessian
    model.curvatures[:], model.change[:] = second, second - first
    model.scalars.total = totals[1]
    _revise_hessian(store, candidates, model, totals[0], inverse)
    out[2] = model.quadratic.hessian


def store_of(X: np.ndarray, kind: str) -> Store:
    # fewer copies than there are features
    copies = np.empty((3, N)), np.full(3, -1), np.full(P, -1)
    cache = ColumnCache(*copies, record(state.CACHE))
    data = csc_array(X if kind == "compressed" else np.zeros((N, 0)))
    lines = {"compressed": np.empty((0, 0)), "rows": X}.get(kind, np.ascontiguousarray(X.T))
    sparse = Compressed(N, data.data, data.indices, data.indptr)
    return Store(kind == "compressed", sparse, lines, kind == "rows", kind == "copied", cache)


def candidates_of(kind: str) -> Candidates:
    """A candidate for each feature, in their order."""
    order, scalars = np.arange(P), record(state.CANDIDATES)
    scalars["count"] = P
    columns = np.empty((P, N)) if kind == "copied" else np.empty((0, 0))
    coef, correlation, mean, predicted, error = np.zeros((5, P))
    return Candidates(
        order,
        order,
        order,
        np.ones(P),
        coef,
        correlation,
        mean,
        order,
        predicted,
        error,
        columns,
        scalars,
    )


def model_of(kind: str) -> PathModel:
    m = MEMBERS.size
    mean, diagonal, gradient, start, step = np.zeros((5, m))
    weighted = np.empty((m, N)) if kind == "copied" else np.empty((0, 0))
    quadratic, net = room_for(np.full((m, m), np.nan)), Net(*np.zeros((4, m)))
    parts = quadratic, diagonal, gradient, start, step, net, record(state.MODEL)
    return PathModel(MEMBERS, mean, weighted, *np.zeros((2, N)), *parts)


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random((N, P)) < 0.5, rng.standard_normal((N, P)), 0.0)


@pytest.mark.parametrize("kind", STORES)
def test_products_are_those_of_arrays(kind: str, X: np.ndarray, rng: np.random.Generator) -> None:
    theta, steps, inverse = rng.standard_normal(N), rng.standard_normal(P), rng.uniform(1, 2, P)
    theta -= theta.mean()  # as copied columns are centred
    candidates, store = candidates_of(kind), store_of(X, kind)
    data = Data(store, np.full(N, 1.0 / N), inverse, True)
    whole, part, total = every_product(data, candidates, theta, steps)
    scaled = X * inverse
    for products_found in (whole, part, candidates.correlation):
        np.testing.assert_allclose(products_found, scaled.T @ theta, atol=1e-13)
    centre = scaled.mean(axis=0) if kind == "copied" else np.zeros(P)
    np.testing.assert_allclose(total, (scaled - centre) @ steps, atol=1e-13)
    assert store.cache.scalars["copied"] == (P if kind == "rows" else 0)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("kind", STORES)
def test_gram_matrices_are_those_of_arrays(
    kind: str, free: bool, X: np.ndarray, rng: np.random.Generator
) -> None:
    first, inverse = rng.uniform(0, 1, N), rng.uniform(1, 2, P)
    second = np.where(rng.random(N) < 0.4, rng.uniform(0, 1, N), first)
    first[:4] = second[2:6] = 0.0
    totals = np.array([first.sum(), second.sum()]) if free else np.zeros(2)
    candidates, model, m = candidates_of(kind), model_of(kind), MEMBERS.size
    data, found = Data(store_of(X, kind), np.full(N, 1.0 / N), inverse, True), np.empty((3, m, m))
    every_gram(data, candidates, model, first, second, totals, found)
    columns = (X * inverse)[:, MEMBERS]
    if kind == "copied":
        columns = columns - columns.mean(axis=0)
    for matrix, curvatures, size in zip(found, (first, first, second), (m - 1, m, m), strict=True):
        mean = curvatures @ columns / curvatures.sum() if free else np.zeros(m)
        exact = ((columns - mean).T * curvatures) @ (columns - mean)
        np.testing.assert_allclose(matrix[:size, :size], exact[:size, :size], atol=1e-13)
    if free:
        np.testing.assert_allclose(model.mean, mean, atol=1e-13)
