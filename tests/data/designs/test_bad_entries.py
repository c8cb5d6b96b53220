"""The first bad entry of arrays and sparse matrices, and the sentence about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from proxmargin.data.designs.samples import Entry, bad_entry, sentence


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_matrix])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e80, 1e80])
def test_the_first_one_by_rows_is_found(form: Any, value: float, rng) -> None:
    X = rng.normal(size=(9000, 7))
    assert bad_entry(form(X), 1e70) is None
    X[8500, 2] = X[8500, 6] = X[8501, 0] = value
    found = bad_entry(form(X), 1e70)
    assert found is not None
    assert found[:2] == (8500, 2)
    np.testing.assert_equal(found.value, value)


def test_data_without_entries_have_no_bad_one() -> None:
    assert bad_entry(np.zeros((0, 3)), 1.0) is None
    assert bad_entry(sparse.csr_matrix((4, 3)), 1.0) is None


@pytest.mark.parametrize(
    ("value", "place", "name", "advice", "expected"),
    [
        (np.nan, "", None, "rescale", "NaN in row 3, column 5 (counted from 0)"),
        (np.inf, "block 2", None, "rescale", "infinity (inf) in block 2, row 3, column 5"),
        (2e80, "", None, "", "2e+80 in row 3, column 5 (counted from 0), beyond 1e+70"),
        (
            2e80,
            "a.parquet, row group 1",
            "age",
            "rescale",
            "2e+80 in a.parquet, row group 1, row 3, column 5 ('age') (counted from 0), "
            "beyond 1e+70, where products overflow: rescale",
        ),
    ],
)
def test_the_sentence_names_place_value_and_limit(
    value: float, place: str, name: str | None, advice: str, expected: str
) -> None:
    said = sentence(Entry(3, 5, value), 1e70, place=place, name=name, advice=advice)
    assert said.startswith(f"Input X contains {expected}")
