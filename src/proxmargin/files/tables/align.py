"""Reading new data the way a fitted model wants it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from proxmargin.files.tables.contents import Table, Wanted
from proxmargin.files.tables.dialect import USUAL, Dialect
from proxmargin.files.tables.sources import open_source

__all__ = ["read_columns", "read_for_model"]


def read_columns(
    source: str | os.PathLike[str],
    feature_names: Sequence[str] | None,
    n_features: int,
    *,
    target: str | int | None = None,
    ignore: Sequence[str | int] = (),
    ids: str | int | None = None,
    blanks: bool = False,
    dialect: Dialect = USUAL,
) -> Table:
    """The columns a model was fitted on, in its order.

    Columns are found by name: a numeric column by its own, and ``column=level`` by comparing the
    column's text with the level (a level the model has not seen gives zeros). Other columns are
    ignored. Where the file or the model has no names, the number of columns must agree; an
    svmlight file may have fewer, because it leaves out zeros.

    Parameters
    ----------
    source : str or path
        As for `read_data`.
    feature_names : sequence of str, or None
        The model's ``feature_names_in_``.
    n_features : int
        The model's ``n_features_in_``.
    target : str or int, optional
        The column with the labels. By default the only column with a usual name (target, label,
        class, y) that is no feature of the model; there need not be one.
    ignore : sequence of str or int
        Columns that are neither features nor the target, by name or by position; of use where the
        model has no names, as other columns are ignored anyway where it has.
    ids : str or int, optional
        A column, such as the names of the samples, that is kept as `Table.ids`. It may be the
        target or a feature, too; a model without names takes it for none.
    blanks : bool
        Keep missing cells, as in `read_data`.
    dialect : Dialect
        How a text table is written.

    Returns
    -------
    Table
        With ``y=None`` where the file has no labels.

    Raises
    ------
    DataError
        The file cannot be read, or lacks columns; the message names them.
    """
    wanted = Wanted(feature_names, int(n_features), target, tuple(ignore), ids, blanks)
    return open_source(source, dialect).for_model(wanted)


def read_for_model(
    source: str | os.PathLike[str],
    model: Any,
    *,
    target: str | int | None = None,
    ignore: Sequence[str | int] = (),
    ids: str | int | None = None,
    dialect: Dialect = USUAL,
) -> Table:
    """The columns that a fitted estimator wants, with blanks if it fills them in; see
    `read_columns`."""
    names = getattr(model, "feature_names_in_", None)
    feature_names = None if names is None else [str(name) for name in names]
    return read_columns(
        source,
        feature_names,
        model.n_features_in_,
        target=target,
        ignore=ignore,
        ids=ids,
        blanks=getattr(model, "fills_blanks", False),
        dialect=dialect,
    )
