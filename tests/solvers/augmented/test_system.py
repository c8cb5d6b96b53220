"""Newton systems over pairs of columns and classes: every form has the same solution."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from proxmargin.compiled.clock import clock
from proxmargin.solvers.augmented import class_system as systems
from proxmargin.solvers.augmented.block import CurvedSamples, DenseBlock, SparseBlock
from proxmargin.solvers.augmented.class_system import (
    MatrixFreePairs,
    OverContrasts,
    OverGram,
    OverPairs,
    class_system,
)

N, P, K = 9, 7, 4
FREE = np.ones((P + 1, K), dtype=bool)
DIAGONAL = np.linspace(0.5, 2.0, P + 1)
MATRIX_FREE = partial(MatrixFreePairs, deadline=np.inf)
BLOCKS = {"dense": DenseBlock, "sparse": lambda X: SparseBlock(sparse.csr_array(X))}


def curved(rng: np.random.Generator) -> CurvedSamples:
    masses = rng.uniform(size=(N, K)) * (rng.uniform(size=(N, K)) < 0.7)
    samples = np.flatnonzero(np.count_nonzero(masses, axis=1) > 1)
    return CurvedSamples(samples, masses[samples] > 0, rng.uniform(0.5, 2.0, samples.size))


def data(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((N, P)) * (rng.uniform(size=(N, P)) < 0.6)


def matrix(X: np.ndarray, live: CurvedSamples) -> np.ndarray:
    """The whole of ``B'B + D``, pairs ordered by class, from its definition."""
    rows = np.column_stack([X, np.ones(N)])
    hessian = np.diag(np.tile(DIAGONAL, K))
    for i, inside, weight in zip(
        live.samples, live.inside.astype(float), live.weights, strict=True
    ):
        bend = weight * (np.diag(inside) - np.outer(inside, inside) / inside.sum())
        hessian += np.kron(bend, np.outer(rows[i], rows[i]))
    return hessian


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("form", [OverPairs, OverContrasts, OverGram, MATRIX_FREE])
def test_the_step_solves_the_system(kind: str, form, rng, monkeypatch) -> None:
    monkeypatch.setattr(systems, "CG_TOLERANCE", 1e-12)
    X, live = data(rng), curved(rng)
    block, slope = BLOCKS[kind](X), rng.standard_normal((P + 1, K))
    step = form(block, live, FREE, DIAGONAL).step(slope, np.ones(FREE.size, dtype=bool))
    np.testing.assert_allclose(matrix(X, live) @ step.T.ravel(), -slope.T.ravel(), atol=1e-9)


def test_the_form_is_that_of_the_shorter_side(rng, monkeypatch) -> None:
    block, live = DenseBlock(data(rng)), curved(rng)
    assert isinstance(
        class_system(block, live, FREE, DIAGONAL, selects=False, deadline=np.inf), OverGram
    )
    assert isinstance(
        class_system(block, live, FREE, DIAGONAL, selects=True, deadline=np.inf), OverContrasts
    )
    few = FREE.copy()
    few[3:] = False
    assert isinstance(
        class_system(block, live, few, DIAGONAL, selects=True, deadline=np.inf), OverPairs
    )
    monkeypatch.setattr(systems, "MAX_SIDE", 1)
    found = class_system(block, live, FREE, DIAGONAL, selects=False, deadline=np.inf)
    assert isinstance(found, MatrixFreePairs)


def test_no_product_and_no_factorisation_begins_after_the_deadline(rng) -> None:
    block, live = DenseBlock(data(rng)), curved(rng)
    slope, every = rng.standard_normal((P + 1, K)), np.ones(FREE.size, dtype=bool)
    for selects in (False, True):
        late = class_system(block, live, FREE, DIAGONAL, selects, deadline=clock() - 1.0)
        assert isinstance(late, MatrixFreePairs)
        step = late.step(slope, every)
        steepest = late.pairs.gathered(step) * late.pairs.gathered(slope)
        assert (steepest <= 0).all()  # one iteration: along the preconditioned gradient
        assert step.any()


@pytest.mark.parametrize("form", [OverPairs, OverContrasts])
@pytest.mark.parametrize("few", [0.0, 10.0])
def test_pairs_are_left_out_with_a_factor_of_their_own_or_without(form, few, rng, monkeypatch):
    monkeypatch.setattr(form, "few", few)
    X, live = data(rng), curved(rng)
    made = form(DenseBlock(X), live, FREE, DIAGONAL)
    slope, keep = rng.standard_normal((P + 1, K)), np.ones(FREE.size, dtype=bool)
    made.step(slope, keep)
    bases = [made.base]
    for gone in ([3], [8, 11, 20], [0, 1, 2, 25]):
        keep[gone] = False
        step = made.step(slope, keep)
        bases.append(made.base)
        whole = made.pairs.gathered(step)
        assert not whole[~keep].any()
        rest = made.pairs.gathered((matrix(X, live) @ step.T.ravel()).reshape(K, P + 1).T + slope)
        np.testing.assert_allclose(rest[keep], 0.0, atol=1e-9)
    assert (bases[0] is bases[-1]) == (few > 0)
