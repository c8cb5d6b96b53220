"""Compensated products against exact arithmetic, where plain sums lose every digit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from proxmargin.compiled.products import compensated
from proxmargin.compiled.rounding import compensated_error

numbers = st.floats(-1e12, 1e12, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-12)


def exact(matrix: np.ndarray, vector: np.ndarray) -> list[Fraction]:
    return [
        sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(row, vector, strict=True)))
        for row in matrix
    ]


def products(matrix: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
    """``matrix @ right`` and the sums of absolute values, by every kernel."""
    rows, columns = sp.csr_array(matrix), sp.csc_array(matrix)
    calls = {
        "along": (compensated.along, matrix),
        "across": (compensated.across, np.ascontiguousarray(matrix.T)),
        "gather": (compensated.gather, rows.data, rows.indices, rows.indptr),
        "scatter": (compensated.scatter, columns.data, columns.indices, columns.indptr),
    }
    found = {}
    for name, (kernel, *parts) in calls.items():
        found[name] = np.empty((2, len(matrix)))
        kernel(*parts, right, *found[name])
    return found


@given(matrix=arrays(float, (3, 7), elements=numbers), right=arrays(float, 7, elements=numbers))
def test_products_are_within_their_bound_of_the_exact_ones(matrix, right) -> None:
    for values, sizes in products(matrix, right).values():
        error = compensated_error(values, sizes, 7)
        for value, bound, truth in zip(values, error, exact(matrix, right), strict=True):
            assert abs(Fraction(float(value)) - truth) <= Fraction(float(bound))


@pytest.mark.parametrize("name", ["along", "across", "gather", "scatter"])
def test_what_cancels_is_kept(name: str, rng) -> None:
    row = np.concatenate([1e16 * (large := rng.standard_normal(200)), [1.0], -1e16 * large])
    plain = float(row @ np.ones(401))
    values, sizes = products(row[None, :], np.ones(401))[name]
    assert values[0] == 1.0 != plain
    assert sizes[0] == pytest.approx(np.abs(row).sum(), rel=1e-12)
