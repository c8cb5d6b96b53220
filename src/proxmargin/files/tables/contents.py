"""What data files hold: tables, requests for them, and how text is written."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import refused
from proxmargin.runtime.types import Record, Values

if TYPE_CHECKING:
    from proxmargin.data.inputs.preprocessing import SeenLevels


@dataclass(frozen=True)
class Dialect:
    """How tables are written, where that cannot be seen: CSV, TSV and other text, and sheets.

    Parameters
    ----------
    separator : str of one character, optional
        Between the cells; ``' '`` stands for blanks of any number. By default what the lines show.
    decimal : str of one character
        Between the whole part of a number and its fraction.
    encoding : str
        A name that Python knows; a byte order mark tells UTF-8, UTF-16 and UTF-32, and is no data.
    header : bool, optional
        Whether the first line has the names of the columns. Otherwise they are called by their
        positions: 0, 1, ... By default all rows decide; where they cannot, the file is refused.
    thousands : str of one character, optional
        Between groups of digits, as in 1,234.5.
    comment : str of one character, optional
        What begins a line, or the rest of one, that is no data.
    missing : sequence of str
        Cells that are missing, besides empty ones and the usual words; of one column alone as
        ``'COLUMN=-9'``. Also of typed tables, such as Parquet. A model file keeps those of the
        training table, to which those of another one add.
    short_rows : {'error', 'missing'}
        Whether rows with too few cells are refused, or end with missing cells.
    sheet : str or int, optional
        The sheet of a workbook, by name or by position; by default its only one with cells.
    transpose : bool
        Whether samples are columns: the first column has the names of the features.
    na_text : bool
        Whether NA and its like are words where text is asked for, such as labels.
    exact : bool
        Whether text that is asked for keeps all that it is written with: NA, and blanks around it.

    Raises
    ------
    DataError
        For marks of another length, empty words, and an unknown encoding or treatment of short
        rows.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | None = None
    thousands: str | None = None
    comment: str | None = None
    missing: tuple[str, ...] = ()
    short_rows: str = "error"
    sheet: str | int | None = None
    transpose: bool = False
    na_text: bool = False
    exact: bool = False

    def __post_init__(self) -> None:
        words = (self.missing,) if isinstance(self.missing, str) else tuple(self.missing)
        object.__setattr__(self, "missing", words)
        empty = [word for word in words if not word.strip() or word[0] == "=" or word[-1] == "="]
        if empty:
            raise refused("no_code", code=empty[0])
        for what, mark in (
            ("separator", self.separator),
            ("decimal mark", self.decimal),
            ("mark of thousands", self.thousands),
            ("mark of comments", self.comment),
        ):
            if mark is not None and (len(mark) != 1 or mark in '"\r\n'):
                raise refused("no_mark", what=what, mark=mark)
        if self.short_rows not in ("error", "missing"):
            raise refused("no_treatment", short_rows=self.short_rows)
        if self.thousands == self.decimal:
            raise refused("same_marks", mark=self.decimal)
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise refused("no_encoding", encoding=self.encoding) from None

    def codes(self, names: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
        """The words that are missing in all of these columns, and those in one of them alone."""
        shared: list[str] = []
        own: dict[str, list[str]] = {}
        for word in self.missing:
            name, _, value = word.rpartition("=")
            if name in names:
                own.setdefault(name, []).append(value)
            else:
                shared.append(word)
        return shared, own

    def refuse_unknown_missing(self, source: str, names: Sequence[str]) -> None:
        """Refuse a word for the missing cells of a column that is none of ``names``."""
        for name, _, value in (word.rpartition("=") for word in self.missing):
            if name and name not in names:
                near = get_close_matches(name, names, 1)
                typed = f": missing='{near[0]}={value}'" if near else " (missing='COLUMN=CODE')"
                raise refused("column_of_code", source, name=name, code=value, names=names, t=typed)


USUAL = Dialect()

DUPLICATES = ("error", "suffix", "mean", "first")


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
    ids : Series or None
        The names of the samples, as text, indexed by their rows in the file (from 0).
    notes : tuple of str
        Sentences about how the file was read.
    doubts : tuple of str
        What was warned of when the file was read.
    rows : int ndarray of shape (n_samples,), or None
        The rows of the file that are samples (from 0), if others may have been left out.
    signs : tuple of str
        What is written beside all numbers of a feature, as ``'COLUMN=%'``.
    """

    X: FeatureMatrix
    y: Values | None
    feature_names: list[str] | None
    target_name: str | None
    source: str
    groups: Values | None = None
    weights: NDArray[np.float64] | None = None
    ids: Any = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    rows: NDArray[np.intp] | None = None
    signs: tuple[str, ...] = ()

    def describe(self) -> Record:
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
            "ids": None if self.ids is None else str(self.ids.name),
            "classes": counts and {str(c): int(n) for c, n in zip(*counts, strict=True)},
        }


@dataclass(frozen=True)
class TableRequest:
    """What a table should look like (see `proxmargin.read_data`); of a fitted model also its
    features, the signs of numbers, and what it knows of columns taken by their ``levels``."""

    target: str | int | None = None
    encode: bool = False
    labelled: bool = True
    ignore: Sequence[str | int] = ()
    groups: str | int | None = None
    weights: str | int | None = None
    blanks: bool = False
    ids: str | int | None = None
    unlabelled: str = "error"
    drop_classes: Sequence[str] = ()
    duplicates: str = "error"
    normalize_levels: bool = False
    feature_names: Sequence[str] | None = None
    signs: Sequence[str] = ()
    n_features: int = 0
    unseen: str = "error"
    levels: Mapping[str, SeenLevels] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)  # of columns that may be there
    not_filled: str = ""  # what to do about missing cells
