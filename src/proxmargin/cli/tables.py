"""The table that the options name."""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proxmargin.cli.options import Note

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Dialect, Table
    from proxmargin.runtime.types import Estimator

# the arguments of `read_data` among them
OF_TABLES = (
    *("target", "ids", "ignore", "groups", "weights", "encode", "normalize_levels"),
    *("unlabelled", "na_labels", "drop_classes", "duplicates", "labels"),
)


def table_of(arguments: argparse.Namespace) -> Table:
    """The data that the arguments name."""
    from proxmargin.files.tables.table import read_data

    given = {name: getattr(arguments, name) for name in OF_TABLES}
    blanks = arguments.impute is not None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        table = read_data(arguments.data, **given, blanks=blanks, dialect=dialect_of(arguments))
    for each in said:
        warnings.warn(each.message, each.category, stacklevel=2)
    tell(table, arguments)
    doubts = (str(each.message).removeprefix(f"{table.source}: ").rstrip(".") for each in said)
    return replace(table, doubts=tuple(doubts))


def tell(table: Table, arguments: argparse.Namespace) -> None:
    """What was done with the columns of a file, on standard error."""
    for note in () if arguments.quiet else table.notes:
        warnings.warn(note, Note, stacklevel=2)


def filled_table_of(arguments: argparse.Namespace) -> tuple[Table, Any]:
    """The data with missing cells filled in, and the imputer that does so; None without one."""
    return filled(table_of(arguments), arguments)


def filled(table: Table, arguments: argparse.Namespace) -> tuple[Table, Any]:
    """The same for data that have been read."""
    if arguments.impute is None:
        return table, None
    from proxmargin.data.inputs.preprocessing import imputer

    transformer = imputer(arguments.impute).fit(table.X)
    return replace(table, X=transformer.transform(table.X)), transformer


def separated(words: str) -> list[str]:
    """The words between commas, or in double quotes: ``"<0,1",n.d.``"""
    return next(csv.reader([words], skipinitialspace=True)) or [""]


def joined(words: Iterable[str]) -> str:
    """Words in one option, of which `separated` makes these words."""
    return ",".join(f'"{word}"' if "," in word else word for word in words)


def dialect_of(arguments: argparse.Namespace) -> Dialect:
    """How the text tables are written that the arguments name."""
    from proxmargin.files.tables.contents import Dialect

    same = ("decimal", "thousands", "encoding", "header", "comment", "short_rows", "sheet")
    return Dialect(
        separator={"tab": "\t", "\\t": "\t"}.get(arguments.sep, arguments.sep),
        missing=tuple(
            word.strip()
            for words in arguments.missing
            for word in separated(words)
            if word.strip() or not words.strip(", ")
        ),
        transpose=arguments.transpose,
        **{name: getattr(arguments, name) for name in same},
    )


def keep_table_options(model: Estimator, arguments: argparse.Namespace, table: Table) -> None:
    """Keep with a model what cells of its training table stand for, for other tables: not how the
    file was written; and between which numbers they are."""
    import numpy as np

    from proxmargin.files.tables.features import digests_of, extremes

    kept = {
        "missing": dialect_of(arguments).missing,
        "signs": table.signs,
        "normalize_levels": arguments.normalize_levels,
        "duplicates": arguments.duplicates != "error" and arguments.duplicates,
    }
    roles = {"target": table.target_name, "ids": getattr(table.ids, "name", None)}
    roles |= {"groups": arguments.groups} if isinstance(arguments.groups, str) else {}
    if table.feature_names is not None and any(roles.values()):
        model.table_roles_ = {role: name for role, name in roles.items() if name is not None}
    if (digests := digests_of(table.ids)) is not None:
        model.table_ids_ = np.unique(digests)
    if any(kept.values()):
        model.table_options_ = {name: value for name, value in kept.items() if value}
    if table.feature_names is not None and not hasattr(table.X, "tocsr"):
        ends = extremes(table.X).tolist()
        model.table_ranges_ = np.array([[float(f"{end:.6g}") for end in each] for each in ends])
