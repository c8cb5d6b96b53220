"""The folds of a value of ``cv``: whole groups where there are groups."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, check_cv

from proxmargin.inputs.validation import check_folds

__all__ = ["check_disjoint", "routed_splitter", "splitter_of"]

DEFAULT_FOLDS = 5  # of cv=None, as in scikit-learn


def splitter_of(cv: Any, y: Any, groups: Any = None) -> Any:
    """The splitter of a value of ``cv``; a number of folds keeps ``groups`` whole.

    Raises
    ------
    ValueError
        ``cv`` is none of these, or there are fewer groups than folds.
    """
    check_folds("cv", cv)
    by_count = cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool))
    if groups is None or not by_count:
        return check_cv(cv, y, classifier=True)
    folds = DEFAULT_FOLDS if cv is None else int(cv)
    count = np.unique(np.asarray(groups)).size
    if count < folds:
        raise ValueError(
            f"cv={folds} folds of whole groups need as many groups, and groups has {count}"
        )
    return StratifiedGroupKFold(folds)


def routed_splitter(cv: Any) -> Any:
    """The splitter that says whether groups are wanted: a number of folds takes them."""
    plain = check_cv(cv, classifier=True)
    is_count = isinstance(cv, Integral) and not isinstance(cv, bool)
    return StratifiedGroupKFold(plain.get_n_splits()) if is_count else plain


def check_disjoint(folds: Iterable[tuple[Any, Any]], count: int) -> None:
    """Raise ValueError for a fold that holds out rows of its own training part.

    Parameters
    ----------
    folds : pairs of row numbers or masks
    count : int
        Rows of the data.
    """
    rows = np.arange(count)
    for number, (train, test) in enumerate(folds):
        shared = np.intersect1d(rows[train], rows[test])
        if shared.size:
            raise ValueError(
                f"cv: fold {number} holds out row {shared[0]} and {shared.size - 1} more that its "
                "training part has, too: held-out scores need rows that the fit did not see"
            )
