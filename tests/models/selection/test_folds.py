"""What a splitter may give: rows or masks, of folds with something to learn and to judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

from proxmargin import HuberizedSVCCV, SquaredHingeSVCCV

ROWS = np.arange(60)


def test_a_fold_without_a_class_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="training rows of fold 0 have no sample of class 0"):
        HuberizedSVCCV(alphas=2, cv=KFold(3)).fit(X, y)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([], r"cv must be a number of folds.*, got \[\]"),
        (iter([]), "cv makes no folds"),
        ([(ROWS[:40], ROWS[40:] + 1)], "cv: fold 0 has row 60, but X has 60 rows"),
        ([(ROWS[:40], ROWS[:0])], "cv: fold 0 holds out no rows to judge"),
        ([(ROWS[:40] + 0.7, ROWS[40:])], "cv: fold 0 has rows of type float64: give row numbers"),
        ([(ROWS < 40, ROWS[:50] > 40)], "cv: fold 0 has a mask of 50 rows, but X has 60"),
    ],
)
def test_folds_that_are_none_are_refused_in_words(cv: Any, message: str) -> None:
    X, y = np.random.default_rng(0).standard_normal((60, 4)), ROWS % 2
    with pytest.raises(ValueError, match=message):
        SquaredHingeSVCCV(alphas=3, cv=cv).fit(X, y)


def test_a_fold_that_holds_out_rows_without_weight_is_refused() -> None:
    X, y = np.random.default_rng(0).standard_normal((60, 4)), ROWS % 2
    with pytest.raises(ValueError, match="fold 0 holds out no rows with positive sample_weight"):
        SquaredHingeSVCCV(alphas=3, cv=KFold(3)).fit(X, y, sample_weight=(ROWS >= 20) * 1.0)


def test_masks_are_folds() -> None:
    X, y = np.random.default_rng(0).standard_normal((60, 4)), ROWS % 2
    by_rows, by_masks = (
        SquaredHingeSVCCV(alphas=3, cv=cv).fit(X, y)
        for cv in ([(ROWS[20:], ROWS[:20])], [(ROWS >= 20, ROWS < 20)])
    )
    np.testing.assert_array_equal(by_rows.cv_scores_, by_masks.cv_scores_)
