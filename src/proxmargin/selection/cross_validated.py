"""The classifiers that choose their own strength, one for each of the plain ones."""

from __future__ import annotations

import numpy as np

from proxmargin.estimators.models.elastic_net import ElasticNetSVC, HuberizedSVC, SquaredHingeSVC
from proxmargin.estimators.models.multiclass import MulticlassSVC
from proxmargin.estimators.models.regularized import SVC, LogisticRegression
from proxmargin.estimators.models.sparse_logistic import SparseLogisticRegression
from proxmargin.estimators.selecting import SelectsFeatures
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


class _SparseCrossValidated(SelectsFeatures, CrossValidated):
    """Base of those whose plain classifier selects features."""

    @property
    def norm_share(self) -> float:
        """That of the chosen classifier; before a fit the least that can be chosen."""
        chosen = getattr(self, "best_estimator_", None)
        return float(np.min(self.l1_ratios) if chosen is None else chosen.norm_share)


@documented
class HuberizedSVCCV(_SparseCrossValidated):
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

    plain = HuberizedSVC


@documented
class ElasticNetSVCCV(_SparseCrossValidated):
    """`ElasticNetSVC` with ``alpha`` and ``l1_ratio`` chosen by cross-validation."""

    plain = ElasticNetSVC


@documented
class SquaredHingeSVCCV(_SparseCrossValidated):
    """`SquaredHingeSVC` with ``alpha`` and ``l1_ratio`` chosen by cross-validation."""

    plain = SquaredHingeSVC


@documented
class SparseLogisticRegressionCV(_SparseCrossValidated):
    """`SparseLogisticRegression` with ``alpha`` and ``l1_ratio`` chosen by cross-validation."""

    plain = SparseLogisticRegression


@documented
class MulticlassSVCCV(_SparseCrossValidated):
    """`MulticlassSVC` with ``C`` (of an elastic net also ``l1_ratio``) chosen by cross-validation.

    With two classes the score of a sample is the difference of the scores of the classes.
    """

    plain = MulticlassSVC


@documented
class SVCCV(CrossValidated):
    """`SVC` with ``C`` chosen by cross-validation."""

    plain = SVC


@documented
class LogisticRegressionCV(CrossValidated):
    """`LogisticRegression` with ``C`` chosen by cross-validation."""

    plain = LogisticRegression
