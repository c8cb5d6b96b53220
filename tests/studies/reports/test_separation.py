"""Areas under the curves of single features, against scikit-learn's."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from proxmargin.studies.reports.card import data_card, single_feature_auc


def test_missing_entries_are_left_out(rng) -> None:
    X, y = np.round(rng.standard_normal((60, 5)), 1), np.arange(60) % 3
    X[rng.random((60, 5)) < 0.2] = np.nan
    areas = single_feature_auc(X, np.eye(3)[y])
    for k in range(3):
        for j in range(5):
            known = ~np.isnan(X[:, j])
            expected = roc_auc_score(y[known] == k, X[known, j])
            np.testing.assert_allclose(areas[k, j], expected)


def test_a_feature_that_gives_the_class_away_is_found_with_a_missing_entry(rng) -> None:
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    X[:, 1] = y
    X[7, 1] = np.nan
    findings = [each["what"] for each in data_card(X, y)["findings"]]
    assert any("x1" in what and "alone separates" in what for what in findings)
