"""Linear systems with one block a class and a coupling of low rank between the classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from proxmargin.designs.base import Array
from proxmargin.solvers.linear_algebra import Factor, Inverse, cholesky, inverse_of

__all__ = ["coupled_inverse", "coupled_work"]

Parts = Sequence[Array]


def coupled_work(side: int, blocks: int, rank: int) -> float:
    """Multiplications of `coupled_inverse` for so many blocks of the same side."""
    halves = side**2 * (side / 3.0 + rank)
    return blocks * (halves + float(side) * rank**2) + rank**3 / 3.0


def coupled_inverse(
    blocks: Parts, couplings: Parts, signs: Array
) -> Callable[[Parts], list[Array]] | None:
    """The inverse of ``V = diag(T_1, ..., T_K) + F S F'``.

    By the identity of Woodbury, ``V^-1 = T^-1 - T^-1 F (S + F' T^-1 F)^-1 F' T^-1``.

    Parameters
    ----------
    blocks : K matrices (n_k, n_k)
        The T_k, positive definite; they are overwritten.
    couplings : K matrices (n_k, rank)
        The rows of F of each block.
    signs : (rank,) of 1 and -1
        The diagonal of S.

    Returns
    -------
    callable or None
        From K vectors (n_k,) to as many; None if a block is not positive definite.
    """
    factors: list[Factor] = []
    inner = np.diag(signs)
    for block, coupling in zip(blocks, couplings, strict=True):
        factor = cholesky(block, overwrite=True)
        if factor is None:
            return None
        factors.append(factor)
        half = factor.solve_half(coupling) if coupling.size else coupling
        inner += half.T @ half
    solve = inverse_of(inner, overwrite=True) if np.all(signs > 0) else _indefinite_inverse(inner)

    def inverse(right: Parts) -> list[Array]:
        first = [factor.solve(part) for factor, part in zip(factors, right, strict=True)]
        parts = zip(couplings, first, strict=True)
        weights = solve(np.sum([coupling.T @ part for coupling, part in parts], axis=0))
        return [
            part - factor.solve(coupling @ weights)
            for factor, coupling, part in zip(factors, couplings, first, strict=True)
        ]

    return inverse


def _indefinite_inverse(matrix: Array) -> Inverse:
    parts = lu_factor(matrix, overwrite_a=True, check_finite=False)

    def inverse(right: Array) -> Array:
        solution: Array = lu_solve(parts, right, check_finite=False)
        return solution

    return inverse
