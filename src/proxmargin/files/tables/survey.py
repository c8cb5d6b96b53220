"""What a file holds, readable or not: kinds of columns, gaps, what may be the target."""

from __future__ import annotations

import os
from typing import Any

from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import USUAL, Dialect, is_text
from proxmargin.files.tables.labels import MANY_CLASSES, TARGET_NAMES
from proxmargin.files.tables.levels import are_ids
from proxmargin.files.tables.sources import open_source

NARROWEST = 3  # rows by columns from which the rows are probably not samples


def survey(source: str | os.PathLike[str], dialect: Dialect = USUAL) -> dict[str, Any]:
    """Plain facts about the columns of a table; of a matrix there are none. DataError: it cannot be
    opened."""
    opened = open_source(source, dialect)
    if not isinstance(opened, NamedColumns):
        return {}
    positions = list(range(len(opened.names)))
    frame = opened.load(positions, ()).set_axis(opened.called, axis=1)
    gaps = frame.isna().sum()
    ids = [j for j in positions if are_ids(frame.iloc[:, j].rename(opened.called[j]))]
    ids = [0, *ids] if opened.index_first or not opened.names[0] else ids
    names = [opened.called[j] for j in dict.fromkeys(ids)]
    candidates = _candidates(frame.iloc[:, [j for j in positions if j not in ids]])
    text = [n for n, dtype in zip(frame.columns, frame.dtypes, strict=True) if is_text(dtype)]
    facts = {
        "rows": len(frame),
        "columns": len(positions),
        "text_columns": [name for name in text if name not in names],
        "missing_cells": {name: int(count) for name, count in gaps.items() if count},
        "names_of_samples": names,
        "target_candidates": candidates,
    }
    if names and not candidates and len(frame) > NARROWEST * len(positions):
        facts["doubt"] = (
            f"{names[0]!r} names the rows, and no column has classes: if the samples are the "
            "columns, turn the table (transpose=True) and take the labels from another one "
            "(labels=FILE)"
        )
    return {name: fact for name, fact in facts.items() if fact}


def _candidates(frame: Any) -> list[str]:
    """Columns that may hold classes: first those of a usual name, of text, the last ones."""
    found = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j].dropna()
        counts = column.value_counts()
        whole = is_text(column.dtype) or column.dtype.kind in "ib" or bool((column % 1 == 0).all())
        if whole and 2 <= len(counts) <= MANY_CLASSES and counts.min() > 1:
            usual = str(frame.columns[j]).lower() in TARGET_NAMES
            found.append((not usual, not is_text(column.dtype), -j, frame.columns[j]))
    return [str(name) for *_, name in sorted(found)]
