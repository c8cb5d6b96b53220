"""Blocks with a coupling of low rank: the inverse is that of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag

from proxmargin.solvers.classes.coupled_blocks import coupled_inverse

SIDES = (4, 0, 3)


@pytest.mark.parametrize("signs", [[1, 1, 1], [1, -1, 1], [-1, -1, -1], []])
def test_it_solves_the_whole_system(signs: list[int], rng) -> None:
    blocks = [np.eye(n) + root @ root.T for n in SIDES for root in [rng.standard_normal((n, n))]]
    couplings = [0.2 * rng.standard_normal((n, len(signs))) for n in SIDES]
    whole = np.vstack(couplings)
    matrix = block_diag(*blocks) + whole * np.array(signs, dtype=float) @ whole.T
    right = [rng.standard_normal(n) for n in SIDES]
    inverse = coupled_inverse(blocks, couplings, np.array(signs, dtype=float))
    assert inverse is not None
    np.testing.assert_allclose(
        np.concatenate(inverse(right)), np.linalg.solve(matrix, np.concatenate(right)), atol=1e-10
    )


def test_a_block_that_is_not_finite_has_no_inverse() -> None:
    assert coupled_inverse([np.full((2, 2), np.nan)], [np.zeros((2, 1))], np.ones(1)) is None
