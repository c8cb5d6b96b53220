"""Rows of one table for the samples of another one, found by the names of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.contents import TableRequest
from proxmargin.files.tables.levels import normal_forms

Found = dict[str, Any]  # Series by the role of their column


def best_key(frame: Any, names: Any) -> int | None:
    """The column of text whose cells are most often names of the samples; None: none has one."""
    shared = []
    for j in frame.columns:
        column, wanted = normal_forms(frame[j].str.strip(), names)
        shared.append(column[column.isin(wanted)].nunique())
    best = int(np.argmax(shared))
    return best if shared[best] else None


def partners(
    samples: Any, found: Found, key: str, source: str, of: str, request: TableRequest
) -> tuple[Found, list[str], int]:
    """The columns ``found``, of which ``ids`` is the one called ``key``, in the order of the
    ``samples`` of another table ``of``; notes on names without a partner; and how many samples
    have none. Raises DataError: a name stands twice, or a sample has no row and needs one."""
    written = found.pop("ids").str.strip()
    _refuse_twice(written, key, source)
    names, wanted = normal_forms(written, samples)
    notes = []
    others = written[names.notna() & ~names.isin(wanted)]
    if len(others):
        notes.append(
            f"{source}: {plural(len(others), 'row')} without a sample in {of}: {listed(others)}"
        )
    lost = samples[~wanted.isin(names)]
    if len(lost):
        notes.append(f"{source}: no row for {plural(len(lost), 'sample')} of {of}: {listed(lost)}")
        if len(lost) == len(samples):
            raise DataError(
                f"{notes[-1]}; its column {key!r} has {listed(written.dropna())}: name another "
                "column (ids=NAME)."
            )
        if request.unlabelled == "error" and request.labelled:
            raise DataError(
                f"{notes[-1]}; leave these samples out (unlabelled='drop'), or name other "
                "columns (ids=NAME)."
            )
    rows = pandas().Index(names).get_indexer(wanted)
    taken = {role: c.take(rows.clip(0)).set_axis(samples.index) for role, c in found.items()}
    same = written.take(rows.clip(0)).set_axis(samples.index)
    other = (rows >= 0) & (same != samples).fillna(False).to_numpy()
    if other.any():
        notes.append(
            f"{source}: {plural(int(other.sum()), 'name')} written otherwise: "
            f"{same[other].iloc[0]!r} is {samples[other].iloc[0]!r}"
        )
    if (rows < 0).any():
        taken = {role: column.where(rows >= 0) for role, column in taken.items()}
    return taken, notes, len(lost)


def _refuse_twice(names: Any, key: str, source: str) -> None:
    repeated = names[names.duplicated() & names.notna()].unique()
    if len(repeated):
        raise DataError(
            f"{source}: the column {key!r} must name each sample once, and has {listed(repeated)} "
            "more than once; remove the other rows, or name another column (ids=NAME)."
        )
