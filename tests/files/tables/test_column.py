"""Columns of a data frame: numbers in blocks are the numbers of each column alone."""

from decimal import Decimal

import numpy as np
import pytest

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import frame_columns, series_column

pd = pytest.importorskip("pandas")


def test_columns_of_a_frame_are_those_of_its_series_in_the_order_asked_for():
    frame = pd.DataFrame(
        {
            "a": [1.5, np.nan],
            "b": [1, 2],
            "c": ["x", None],
            "d": [True, False],
            "e": np.array([0.1, np.inf], dtype=np.float32),
            "f": [-0.0, 2.0],
            "g": pd.array([1, None], dtype="Int64"),
            "h": pd.Categorical(["u", "v"]),
            "i": [Decimal("0.1"), None],
            "j": [2**63, 2**64 - 1],
        }
    )
    names = list("jfcaihgbed")
    for name, column in zip(names, frame_columns(frame, names), strict=True):
        alone = series_column(name, frame[name])
        assert column.name == name
        assert column.values.dtype == alone.values.dtype
        np.testing.assert_array_equal(column.values, alone.values)
        np.testing.assert_array_equal(column.missing, alone.missing)


def test_numbers_of_a_wide_text_table_are_read_to_the_last_bit(tmp_path):
    random = np.random.default_rng(3)
    cells = [
        [repr(v) for v in row]
        for row in (random.normal(size=(5, 400)) * 10.0 ** random.integers(-300, 300, 400)).tolist()
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
