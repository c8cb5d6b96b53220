"""Logistic regression with an elastic net, binary and multinomial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proxmargin.designs import Design
from proxmargin.estimators.assembly import margin_sums
from proxmargin.estimators.documented import (
    SPARSE_ATTRIBUTES,
    SPARSE_PARAMETERS,
    documented,
)
from proxmargin.estimators.models.elastic_net import EVERY, ElasticNetEstimator
from proxmargin.estimators.probabilities import LogisticProbabilities
from proxmargin.inputs.targets import Targets
from proxmargin.loop.report import Report
from proxmargin.losses import Logistic, Loss, MarginLoss, Multinomial

__all__ = ["SparseLogisticRegression"]


@documented(
    solvers=f"{EVERY}, 'class-newton' (l1_ratio > 0)",
    parameters=SPARSE_PARAMETERS,
    attributes=SPARSE_ATTRIBUTES,
)
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

    def __init__(
        self,
        alpha: float = 0.01,
        l1_ratio: float = 0.5,
        multi_class: str = "joint",
        *,
        penalty_factor: Any = None,
        bounds: Any = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: Any = None,
        solver: Any = "auto",
        solver_options: Any = None,
        stopping: str = "gap",
        tol: float = 1e-6,
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Report], object]] = (),
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.multi_class = multi_class
        self.penalty_factor = penalty_factor
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.solver = solver
        self.solver_options = solver_options
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    _sums_to_zero = False

    def _margin_loss(self) -> MarginLoss:
        return Logistic()

    def _losses(self, targets: Targets, design: Design, joint: bool) -> Sequence[Loss]:
        if joint:
            count = targets.classes.size
            return [Multinomial(targets.codes, targets.shares, count, targets.total)]
        return margin_sums(self._margin_loss(), targets, joint)
