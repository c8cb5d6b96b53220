"""What data files hold: columns and tables, requests for them, and how text is written."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import DataError, pandas

# What `pandas.api.types.infer_dtype` calls objects that are numbers (or nothing at all).
_NUMBER_OBJECTS = frozenset(
    {"boolean", "integer", "floating", "mixed-integer-float", "decimal", "empty"}
)


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers (any float, integer or boolean dtype) or text (an object array of str). Entries where
    `missing` holds have no meaningful value."""

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


def is_number(cell: object, decimal: str = ".") -> bool:
    """Whether a cell is a number as pandas reads it: without the underscores of Python."""
    text = str(cell).replace(decimal, ".")
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def array_column(name: str, values: NDArray[Any]) -> Column:
    values = np.asarray(values)
    if values.dtype.kind == "f":
        return Column(name, values, np.isnan(values))
    absent = np.zeros(values.shape, dtype=bool)
    return Column(name, values.astype(object) if values.dtype.kind == "U" else values, absent)


def series_column(name: str, series: Any) -> Column:
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
    """The named columns of a DataFrame, as by `series_column`. Those of one NumPy type are taken
    out as a block: a Series costs more than the few hundred numbers of a column in a wide table."""
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


@dataclass(frozen=True)
class Dialect:
    """How to read CSV, TSV and other delimited text.

    Parameters
    ----------
    separator : str of one character, optional
        Between the cells. By default a tab in TSV files and a comma elsewhere. A file whose
        suffix is unknown, or .txt, is read as a text table where it is given.
    decimal : str of one character
        Between the whole part of a number and its fraction.
    encoding : str
        A name that Python knows; a byte order mark is no data in UTF-8.
    header : bool
        Whether the first line has the names of the columns. Otherwise they are called by their
        positions: 0, 1, ...

    Raises
    ------
    DataError
        For a separator or decimal mark of another length, and an unknown encoding.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool = True

    def __post_init__(self) -> None:
        for what, mark in (("separator", self.separator), ("decimal mark", self.decimal)):
            if mark is not None and (len(mark) != 1 or mark in '"\r\n'):
                raise DataError(f"The {what} must be one character, and not {mark!r}.")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise DataError(f"There is no encoding {self.encoding!r}.") from None

    @property
    def codec(self) -> str:
        """The encoding, without the byte order mark that UTF-8 may begin with."""
        name = codecs.lookup(self.encoding).name
        return "utf-8-sig" if name == "utf-8" else name


USUAL = Dialect()


FeatureMatrix: TypeAlias = "NDArray[Any] | sp.csr_array"


@dataclass(frozen=True, eq=False)
class Table:
    """Samples, labels and names, ready for an estimator.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), float64 or float32
    y : ndarray of shape (n_samples,), or None where the file carries no labels
    feature_names : list of str, or None where the format has no names
    target_name : str or None
        The column the labels came from.
    source : str
        The path or the name of the embedded set, for messages.
    groups : ndarray of shape (n_samples,), or None
        The group of each sample, where a column of groups was asked for.
    weights : float ndarray of shape (n_samples,), or None
        The weight of each sample, where a column of weights was asked for.
    ids : Column or None
        The column that was to be kept beside the features.
    """

    X: FeatureMatrix
    y: NDArray[Any] | None
    feature_names: list[str] | None
    target_name: str | None
    source: str
    groups: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    ids: Column | None = None

    def describe(self) -> dict[str, Any]:
        """Plain facts about the table, ready to print or to write as JSON."""
        rows, columns = (int(size) for size in self.X.shape)
        filled = int(np.count_nonzero(self.X.data if sp.issparse(self.X) else self.X))
        counts = None if self.y is None else np.unique(self.y, return_counts=True)
        return {
            "source": self.source,
            "rows": rows,
            "columns": columns,
            "dtype": str(self.X.dtype),
            "sparse": bool(sp.issparse(self.X)),
            "density": filled / (rows * columns) if rows and columns else 0.0,
            "named_features": self.feature_names is not None,
            "target": self.target_name,
            "classes": counts and {str(c): int(n) for c, n in zip(*counts, strict=True)},
        }


@dataclass(frozen=True)
class TableRequest:
    """What a training table should look like (see `proxmargin.read_data`)."""

    target: str | int | None = None
    encode: bool = False
    labelled: bool = True
    ignore: Sequence[str | int] = ()
    groups: str | int | None = None
    weights: str | int | None = None
    blanks: bool = False


@dataclass(frozen=True)
class Wanted:
    """The columns a fitted model needs: by name where it knows names, otherwise by count.
    ``ignore``: neither features nor the target; ``ids``: one that is to be kept as it is."""

    feature_names: Sequence[str] | None
    n_features: int
    target: str | int | None = None
    ignore: Sequence[str | int] = ()
    ids: str | int | None = None
    blanks: bool = False
