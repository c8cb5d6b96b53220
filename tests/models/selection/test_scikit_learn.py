"""The cross-validated classifiers are scikit-learn estimators, with no check excused."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from proxmargin import (
    SVCCV,
    ElasticNetSVCCV,
    HuberizedSVCCV,
    LogisticRegressionCV,
    MulticlassSVCCV,
    SparseLogisticRegressionCV,
    SquaredHingeSVCCV,
)


@pytest.mark.slow
@parametrize_with_checks(
    [
        # weights and repeated rows are compared to 1e-7
        HuberizedSVCCV(alphas=2, l1_ratios=(0.5,), eps=0.1, cv=3, tol=1e-10),
        ElasticNetSVCCV(alphas=2, eps=0.1, cv=3, tol=1e-10),
        SquaredHingeSVCCV(alphas=2, eps=0.1, cv=3),
        SparseLogisticRegressionCV(alphas=2, l1_ratios=(0.5,), eps=0.1, cv=3, tol=1e-10),
        MulticlassSVCCV(Cs=2, eps=0.1, cv=3, tol=1e-10),
        SVCCV(Cs=2, cv=3),
        LogisticRegressionCV(Cs=2, cv=3, tol=1e-9),
        SVCCV(Cs=2, cv=3, kernel="rbf", gamma=0.3),
    ]
)
def test_scikit_learn_check(estimator, check) -> None:
    check(estimator)
