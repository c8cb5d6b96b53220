"""The classifiers that choose their own strength, one for each of the plain ones."""

from __future__ import annotations

from proxmargin.estimators.models.elastic_net import ElasticNetSVC, HuberizedSVC, SquaredHingeSVC
from proxmargin.estimators.models.multiclass import MulticlassSVC
from proxmargin.estimators.models.regularized import SVC, LogisticRegression
from proxmargin.estimators.models.sparse_logistic import SparseLogisticRegression
from proxmargin.selection.base import CrossValidated
from proxmargin.selection.documented import documented

__all__ = [
    "SVCCV",
    "ElasticNetSVCCV",
    "HuberizedSVCCV",
    "LogisticRegressionCV",
    "MulticlassSVCCV",
    "SparseLogisticRegressionCV",
    "SquaredHingeSVCCV",
]


@documented
class HuberizedSVCCV(CrossValidated, plain=HuberizedSVC, count=100):
    """`HuberizedSVC` with ``alpha`` and ``l1_ratio`` chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HuberizedSVCCV(alphas=10, l1_ratios=(0.5, 1.0), standardize=True).fit(X, y)
    >>> model.cv_scores_.shape, model.path_.n_nonzero.size
    ((2, 10, 5), 10)
    """


@documented
class ElasticNetSVCCV(CrossValidated, plain=ElasticNetSVC, count=100):
    """`ElasticNetSVC` with ``alpha`` and ``l1_ratio`` chosen by cross-validation."""


@documented
class SquaredHingeSVCCV(CrossValidated, plain=SquaredHingeSVC, count=100):
    """`SquaredHingeSVC` with ``alpha`` and ``l1_ratio`` chosen by cross-validation."""


@documented
class SparseLogisticRegressionCV(CrossValidated, plain=SparseLogisticRegression, count=100):
    """`SparseLogisticRegression` with ``alpha`` and ``l1_ratio`` chosen by cross-validation."""


@documented
class MulticlassSVCCV(CrossValidated, plain=MulticlassSVC, count=20):
    """`MulticlassSVC` with ``C`` (of an elastic net also ``l1_ratio``) chosen by cross-validation.

    With two classes the score of a sample is the difference of the scores of the classes.
    """


@documented
class SVCCV(CrossValidated, plain=SVC, count=20):
    """`SVC` with ``C`` chosen by cross-validation."""


@documented
class LogisticRegressionCV(CrossValidated, plain=LogisticRegression, count=20):
    """`LogisticRegression` with ``C`` chosen by cross-validation."""
