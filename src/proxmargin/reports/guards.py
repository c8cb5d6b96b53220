"""Signs of leakage in a data file, each in one short sentence with what to type against it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from proxmargin.reports.card import data_card

__all__ = ["leak_signs"]

# entries above which data are not searched: seconds, and a fit to so many takes as long
SEARCHED = 2e7
# share of rows that repeat earlier ones, below which rounding to a few digits explains them
FEW_REPEATS = 0.01
NAMED = 3  # columns named by a sentence


def leak_signs(
    X: Any, y: Any, names: Sequence[str] | None = None, *, grouped: bool = False
) -> list[str]:
    """What makes scores of these data too good, in sentences that name options of the command line.

    Parameters
    ----------
    X : (n_samples, n_features) array or sparse matrix
        May have missing entries (NaN).
    y : (n_samples,) labels
    names : (n_features,), optional
        Of the features; of a column of text ``column=level``.
    grouped : bool
        Rows that belong together are known.
    """
    stored = X.nnz if hasattr(X, "nnz") else X.size
    if stored > SEARCHED:
        return []
    card = data_card(X, y, names)
    return list(_signs(card, X, np.asarray(y), names, grouped))


def _signs(
    card: dict[str, Any], X: Any, y: Any, names: Sequence[str] | None, grouped: bool
) -> Iterator[str]:
    ordered = [each["feature"] for each in card["suspects"] if each["auc"] is None]
    ordered += _one_level_a_row(names or [], y.size)
    if ordered:
        yield f"{_listed(ordered)} numbers or names the rows: {_ignore(ordered)}"
    called = list(names) if names is not None else [f"x{j}" for j in range(card["n_features"])]
    suspects = [each["feature"] for each in card["suspects"] if each["auc"] is not None]
    alone = [name for name in suspects if _separates(X, y, called.index(name))]
    if alone:
        yield (
            f"{_listed(alone)} alone separates the classes: {_ignore(alone)}, "
            "if it is known only with the class"
        )
    repeats = card["duplicate_rows"]["count"]
    if repeats >= max(1, FEW_REPEATS * y.size) and not grouped:
        yield (
            f"{repeats} of {y.size} rows repeat earlier ones, and copies on both sides of a split "
            "make scores too good: remove them, or keep them together (compare --groups COL)"
        )
    if card["sorted_by_class"]:
        yield (
            "the rows are sorted by class: folds of your own must be shuffled "
            "(StratifiedKFold(shuffle=True)), as those of compare are"
        )


def _one_level_a_row(names: Sequence[str], rows: int) -> list[str]:
    """Columns of text with as many levels as there are rows."""
    levels = Counter(name.partition("=")[0] for name in names if "=" in name)
    return [column for column, count in levels.items() if count == rows > 1]


def _separates(X: Any, y: Any, j: int) -> bool:
    """Whether each class has an interval of the feature to itself."""
    column = X[:, [j]].toarray()[:, 0] if hasattr(X, "tocsr") else X[:, j]
    known = ~np.isnan(column)
    codes = np.unique(y[known], return_inverse=True)[1]
    order = np.lexsort((codes, column[known]))
    values, codes = column[known][order], codes[order]
    borders = np.flatnonzero(np.diff(codes))
    tied = bool(np.any(values[borders] == values[borders + 1]))
    return borders.size == codes.max(initial=0) > 0 and not tied


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(repr, names[:NAMED])) + more


def _ignore(names: Sequence[str]) -> str:
    return " ".join(f"--ignore {shlex.quote(name.partition('=')[0])}" for name in names[:NAMED])
