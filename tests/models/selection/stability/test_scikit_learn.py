"""Stability selection is a scikit-learn transformer."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from proxmargin import HuberizedSVC, SparseLogisticRegression, StabilitySelection

# halves are drawn from the rows: two copies of a row are not a row of weight 2
HALVED = dict.fromkeys(
    (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")),
    "a half has whole rows",
)


@pytest.mark.slow
@parametrize_with_checks(
    [
        StabilitySelection(
            SparseLogisticRegression(l1_ratio=1.0), n_pairs=2, threshold=0.9, q=1, alphas=3
        ),
        StabilitySelection(HuberizedSVC(l1_ratio=1.0), n_pairs=2, threshold=0.9, alphas=3),
    ],
    expected_failed_checks=lambda estimator: HALVED,
)
def test_scikit_learn_check(estimator, check) -> None:
    check(estimator)
