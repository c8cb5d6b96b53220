"""Columns of a data frame: numbers in blocks are the numbers of each column alone."""

from decimal import Decimal

import numpy as np
import pytest

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.cells import numbers_or_text

pd = pytest.importorskip("pandas")


def test_series_are_numbers_or_text_whatever_their_types():
    kinds = {
        "a": ([1.5, np.nan], "float64"),
        "b": ([1, 2], "int64"),
        "c": (["x", None], "string"),
        "d": ([True, False], "bool"),
        "e": (np.array([0.1, np.inf], dtype=np.float32), "float32"),
        "g": (pd.array([1, None], dtype="Int64"), "float64"),
        "h": (pd.Categorical(["u", "v"]), "string"),
        "i": ([Decimal("0.1"), None], "float64"),
        "j": ([2**63, 2**64 - 1], "uint64"),
        "k": (pd.Series([True, None], dtype=object), "float64"),
    }
    for name, (values, dtype) in kinds.items():
        given = pd.Series(values, name=name)
        found = numbers_or_text(given)
        assert (found.name, found.dtype) == (name, dtype)
        assert found.isna().tolist() == given.isna().tolist()
        assert found.dropna().tolist() == given.dropna().astype(dtype).tolist()


def test_numbers_of_a_wide_text_table_are_read_to_the_last_bit(tmp_path):
    random = np.random.default_rng(3)
    cells = [
        [repr(v) for v in row]
        for row in (random.normal(size=(5, 400)) * 10.0 ** random.integers(-300, 69, 400)).tolist()
    ]
    lines = [",".join([*(f"g{j}" for j in range(400)), "label"])]
    lines += [",".join([*row, "ab"[i % 2]]) for i, row in enumerate(cells)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(lines) + "\n")
    expected = [[float(cell) for cell in row] for row in cells]
    np.testing.assert_array_equal(read_data(path).X, expected)


def test_an_infinite_cell_of_a_wide_text_table_is_named_by_row_and_column(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("a,b,c,label\n1.5,2,3.5,x\n2.5,4,inf,y\n")
    with pytest.raises(DataError, match="row 2, column 'c'"):
        read_data(path)
