"""Options that say how a table is read, and the table that they name."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proxmargin.cli.options import Note, add_group

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Dialect, Table
    from proxmargin.runtime.types import Estimator

# what a column of the data is: option, and what argparse is told of it
ROLES: Mapping[str, Mapping[str, object]] = {
    "--target": {
        "help": "the column with the labels, by name or position (default: the one called target, "
        "label, class or y, else the last)",
    },
    "--id": {
        "dest": "ids",
        "help": "the column with the names of the samples, which is no feature (default: a first "
        "column without a name, or one of text that is different in each row)",
    },
    "--ignore": {
        "action": "append",
        "default": [],
        "help": "columns that are no features: a name, a position, a range of positions such as "
        "2-5, or a pattern such as 'Unnamed*'; may be given again",
    },
    "--groups": {
        "help": "a column of patients, batches or centres, which is no feature: folds and halves "
        "keep the samples of a group together, and permutations stay within it",
    },
    "--weights": {"help": "a column with the weights of the samples, which is no feature"},
}


# what becomes of cells, rows and classes
CELLS: Mapping[str, Mapping[str, object]] = {
    "--encode": {
        "action": "store_true",
        "help": "turn columns of text into one feature per level; otherwise they are refused",
    },
    "--normalize-levels": {
        "action": "store_true",
        "help": "join levels that differ only in blanks, case or the way a number is written",
    },
    "--impute": {
        "choices": ("median", "mean", "constant"),
        "help": "fill in missing cells by the median or the mean of the column, or by zero; "
        "otherwise they are refused. Cells of text become zeros in all levels",
    },
    "--unlabelled": {
        "choices": ("error", "drop"),
        "default": "error",
        "help": "rows without a label are refused (default) or left out",
    },
    "--na-labels": {
        "action": "store_true",
        "help": "labels such as NA are a class, and not missing; only empty ones are",
    },
    "--drop-classes": {
        "metavar": "CLASS",
        "action": "append",
        "default": [],
        "help": "leave out the samples of a class; may be given again",
    },
    "--duplicates": {
        "choices": ("error", "suffix", "mean", "first"),
        "default": "error",
        "help": "columns of the same name are refused (default), numbered, averaged, or only the "
        "first one is kept",
    },
    "--labels": {
        "metavar": "FILE",
        "help": "a second table with the labels, joined by the names of the samples (--id); "
        "--target, --groups and --weights are its columns",
    },
}


# the arguments of `read_data` among them
OF_TABLES = (
    *("target", "ids", "ignore", "groups", "weights", "encode", "normalize_levels"),
    *("unlabelled", "na_labels", "drop_classes", "duplicates", "labels"),
)


# how a table is written: option, and what argparse is told of it
WRITTEN: Mapping[str, Mapping[str, object]] = {
    "--sep": {
        "metavar": "CHAR",
        "help": "between the cells; 'tab' for a tab (default: what the lines show)",
    },
    "--decimal": {"metavar": "CHAR", "default": ".", "help": "before the fraction of a number"},
    "--thousands": {"metavar": "CHAR", "help": "between groups of digits, as in 1,234.5"},
    "--encoding": {
        "metavar": "NAME",
        "default": "utf-8",
        "help": "such as latin-1 (default: utf-8, or what a byte order mark tells)",
    },
    "--header": {
        "action": argparse.BooleanOptionalAction,
        "help": "the first line has the names of the columns, or is data, and columns are called "
        "0, 1, ... (default: what all rows tell)",
    },
    "--comment": {"metavar": "CHAR", "help": "begins a line, or the rest of one, that is no data"},
    "--missing": {
        "metavar": "WORDS",
        "action": "append",
        "default": [],
        "help": "cells that are missing, separated by commas, such as '?,.,n/a', or of one column "
        "alone, such as age=-9; besides empty ones and the usual words; may be given again; saved "
        "models keep them",
    },
    "--short-rows": {
        "choices": ("error", "missing"),
        "default": "error",
        "help": "rows with too few cells are refused (default), or end with missing ones",
    },
    "--sheet": {"metavar": "NAME", "help": "of a workbook (default: the only one with cells)"},
    "--transpose": {
        "action": "store_true",
        "help": "the samples are the columns: the first column has the names of the features",
    },
}


def add_columns(parser: argparse.ArgumentParser, without: str = "") -> None:
    """What the columns are, what becomes of their cells, and how a text table is written;
    ``without`` one role."""
    add_roles(parser, *(option for option in ROLES if option != without))
    add_group(parser, "cells, rows and classes", CELLS)
    add_text(parser)


def add_roles(parser: argparse.ArgumentParser, *options: str) -> None:
    settings = {option: {"metavar": "COL", **ROLES[option]} for option in options}
    add_group(parser, "columns (by name or position; 0 is the first, -1 the last)", settings)


def add_text(parser: argparse.ArgumentParser) -> None:
    add_group(parser, "tables (defaults: as written by most programs)", WRITTEN)


def table_of(arguments: argparse.Namespace) -> Table:
    """The data that the arguments name."""
    from proxmargin.files.tables.table import read_data

    given = {name: getattr(arguments, name) for name in OF_TABLES}
    blanks = arguments.impute is not None
    table = read_data(arguments.data, **given, blanks=blanks, dialect=dialect_of(arguments))
    tell(table, arguments)
    return table


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


def dialect_of(arguments: argparse.Namespace) -> Dialect:
    """How the text tables are written that the arguments name."""
    from proxmargin.files.tables.contents import Dialect

    same = ("decimal", "thousands", "encoding", "header", "comment", "short_rows", "sheet")
    return Dialect(
        separator={"tab": "\t", "\\t": "\t"}.get(arguments.sep, arguments.sep),
        missing=tuple(
            word.strip()
            for words in arguments.missing
            for word in words.split(",")
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
    if table.feature_names is not None and any(roles.values()):
        model.table_roles_ = {role: name for role, name in roles.items() if name is not None}
    if (digests := digests_of(table.ids)) is not None:
        model.table_ids_ = np.unique(digests)
    if any(kept.values()):
        model.table_options_ = {name: value for name, value in kept.items() if value}
    if table.feature_names is not None and not hasattr(table.X, "tocsr"):
        ends = extremes(table.X).tolist()
        model.table_ranges_ = np.array([[float(f"{end:.6g}") for end in each] for each in ends])
