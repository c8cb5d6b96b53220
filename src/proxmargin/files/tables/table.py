"""Reading a data file into features and labels."""

from __future__ import annotations

import os
from collections.abc import Sequence

from proxmargin.files.tables.contents import Table, TableRequest
from proxmargin.files.tables.dialect import USUAL, Dialect
from proxmargin.files.tables.sources import open_source

__all__ = ["Dialect", "Table", "read_data"]


def read_data(
    source: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    encode: bool = False,
    labelled: bool = True,
    ignore: Sequence[str | int] = (),
    groups: str | int | None = None,
    weights: str | int | None = None,
    blanks: bool = False,
    dialect: Dialect = USUAL,
) -> Table:
    """The samples and labels of a data file or an embedded set.

    Parameters
    ----------
    source : str or path
        A file in svmlight, CSV, TSV, Parquet, Arrow/Feather or NPZ format, known by its suffix,
        or one of ``breast_cancer``, ``digits``, ``iris``, ``wine``.
    target : str or int, optional
        The column with the labels, by name or by position (0 is the first, -1 the last). By
        default the only column called target, label, class or y (in any case); otherwise the last.
    encode : bool
        Turn columns of text into one feature ``column=level`` per level. Otherwise they are
        refused.
    labelled : bool
        Whether labels are needed. Where not, a target is used if it is named or obvious, and
        the last column is not taken for one.
    ignore : sequence of str or int
        Columns that are no features, such as row numbers and names, by name or by position.
    groups : str or int, optional
        A column that says which samples belong together (patients, batches), by name or by
        position; it is no feature.
    weights : str or int, optional
        A column with the weights of the samples, numbers >= 0, by name or by position; it is no
        feature.
    blanks : bool
        Keep missing cells of features, as NaN and as zeros in all levels of a column of text.
        Otherwise they are refused.
    dialect : Dialect
        How a text table is written: separator, decimal mark, encoding, header.

    Notes
    -----
    Labels that are numbers in a text table stay text where one has a leading zero: 01 is not 1.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        The file cannot be read, or is no table for classification; the message says why.
    """
    request = TableRequest(target, encode, labelled, tuple(ignore), groups, weights, blanks)
    return open_source(source, dialect).table(request)
