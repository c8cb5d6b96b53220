"""Logistic regression with an elastic net, binary and multinomial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxmargin.designs import Design
from proxmargin.estimators.assembly import margin_sums
from proxmargin.estimators.documented import SPARSE_ATTRIBUTES, SPARSE_PARAMETERS, documented
from proxmargin.estimators.fitting import FitContext
from proxmargin.estimators.models.elastic_net import EVERY, ElasticNetEstimator
from proxmargin.estimators.probabilities import LogisticProbabilities
from proxmargin.inputs.targets import Targets
from proxmargin.losses import Logistic, Loss, MarginLoss, Multinomial

__all__ = ["SparseLogisticRegression"]


@documented(
    solvers=f"{EVERY}, 'class-newton' (l1_ratio > 0)",
    parameters=SPARSE_PARAMETERS,
    attributes=SPARSE_ATTRIBUTES,
)
@dataclass(eq=False, repr=False)
class SparseLogisticRegression(LogisticProbabilities, ElasticNetEstimator):
    """Logistic regression with an elastic net (Ito et al. 2017, (27), with ``C = 1 / (n l1)``).

    Binary: ``minimise mean log(1 + exp(-y (x'w + b))) + l1 |w|_1 + (l2/2) |w|^2`` with a free
    intercept. More classes, all together: the multinomial model ``minimise
    mean log sum_k exp(z_k - z_y) + l1 |W|_1 + (l2/2) |W|^2`` with ``z = W x + b``, whose
    intercepts sum to zero.

    Parameters
    ----------
    alpha : float >= 0, default 0.01
        Strength of the penalty. `proxmargin.alpha_max` is the least one with all-zero coefficients.
        With 0 the certificate proves the optimum of separable data, and of at most 256 independent
        features, fewer than the samples, in models of one column of scores; of others none.
    l1_ratio : float in [0, 1], default 0.5
        ``l1 = alpha * l1_ratio``, ``l2 = alpha * (1 - l1_ratio)``.
    multi_class : {'joint', 'ovr'}
        More than two classes: the multinomial model, which takes factors above 0 only, or one
        problem a class against the rest.
    <shared>

    <attributes>
    """

    multi_class: str = "joint"

    _sums_to_zero = False

    def _margin_loss(self) -> MarginLoss:
        return Logistic()

    def _losses(
        self, targets: Targets, design: Design, joint: bool, context: FitContext
    ) -> Sequence[Loss]:
        if joint:
            count = targets.classes.size
            return [Multinomial(targets.codes, targets.shares, count, targets.total)]
        return margin_sums(self._margin_loss(), targets, joint)
