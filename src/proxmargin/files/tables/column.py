"""One named column of a table: numbers or text, and where it is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.extras import pandas

# What `pandas.api.types.infer_dtype` calls objects that are numbers (or nothing at all).
_NUMBER_OBJECTS = frozenset(
    {"boolean", "integer", "floating", "mixed-integer-float", "decimal", "empty"}
)


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers (any float, integer or boolean dtype) or text (an object array of str).

    Entries where `missing` holds have no meaningful value.
    """

    name: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]

    @property
    def is_numeric(self) -> bool:
        return self.values.dtype.kind in "fiub"

    def infinite(self) -> NDArray[np.bool_]:
        """Where the numbers are plus or minus infinity (never in text)."""
        if self.values.dtype.kind != "f":
            return np.zeros(self.values.shape, dtype=bool)
        return np.asarray(np.isinf(self.values))

    def written(self) -> NDArray[np.object_]:
        """The entries as they are, to be written again; missing ones are empty."""
        cells = self.values.astype(object)
        cells[self.missing] = ""
        return cells

    def as_text(self) -> NDArray[np.object_]:
        """The entries as str, as they name the levels of a category."""
        return np.array([str(value) for value in self.values.tolist()], dtype=object)


def array_column(name: str, values: NDArray[Any]) -> Column:
    """A column from an array of numbers or of unicode strings."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        return Column(name, values, np.isnan(values))
    absent = np.zeros(values.shape, dtype=bool)
    return Column(name, values.astype(object) if values.dtype.kind == "U" else values, absent)


def series_column(name: str, series: Any) -> Column:
    """A column from a pandas Series of any dtype."""
    pd = pandas()
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = pd.Series(np.asarray(series))
    missing = series.isna().to_numpy(dtype=bool)
    if _holds_numbers(series):
        return Column(name, _numbers(series, missing), missing)
    text = series.astype(object).where(~missing, "")
    values = np.array([str(value) for value in text], dtype=object)
    return Column(name, values, missing)


def frame_columns(frame: Any, names: Sequence[str]) -> list[Column]:
    """The named columns of a pandas DataFrame whose names differ, each as by `series_column`.

    Columns of the same NumPy type are taken out as one block: a Series costs more than the few
    hundred numbers of a column in a wide table.
    """
    positions = frame.columns.get_indexer(list(names))
    types = frame.dtypes.to_numpy()[positions]
    found: dict[int, Column] = {}
    is_one_block = len(set(frame.dtypes.tolist())) == 1
    if names and not is_one_block:
        frame = frame.copy()  # brings columns of a type together: faster than to pick each
    for dtype in set(types.tolist()):
        alike = np.flatnonzero([other == dtype for other in types])
        if isinstance(dtype, np.dtype) and dtype.kind in "fiub":
            at = positions[alike]
            block = frame.to_numpy().T[at].T if is_one_block else frame.iloc[:, at].to_numpy()
            missing = np.isnan(block) if dtype.kind == "f" else np.zeros(block.shape, dtype=bool)
            columns = zip(alike.tolist(), block.T, missing.T, strict=True)
            found |= {j: Column(names[j], values, absent) for j, values, absent in columns}
        else:
            found |= {j: series_column(names[j], frame[names[j]]) for j in alike.tolist()}
    return [found[j] for j in range(len(names))]


def _holds_numbers(series: Any) -> bool:
    types = pandas().api.types
    if types.is_object_dtype(series.dtype):
        return types.infer_dtype(series, skipna=True) in _NUMBER_OBJECTS
    if types.is_complex_dtype(series.dtype):
        return False
    return bool(types.is_numeric_dtype(series.dtype) or types.is_bool_dtype(series.dtype))


def _numbers(series: Any, missing: NDArray[np.bool_]) -> NDArray[Any]:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiub":
        return np.asarray(series.to_numpy())
    if not missing.any() and pandas().api.types.infer_dtype(series) == "boolean":
        return np.asarray(series.to_numpy(dtype=bool))
    # object columns of Decimal, bool and None, and the nullable extension types
    return np.asarray(series.astype(object).where(~missing, np.nan).to_numpy(dtype=np.float64))
