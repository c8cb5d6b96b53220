"""Classifiers with an elastic net: huberized hinge, squared hinge, logistic loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from proxmargin.estimators.base import MarginEstimator
from proxmargin.estimators.validation import check_number
from proxmargin.losses import HuberizedHinge, Logistic, MarginLoss, SquaredHinge
from proxmargin.minimize import Report
from proxmargin.penalties import ElasticNet

__all__ = ["HuberizedSVC", "SparseLogisticRegression", "SquaredHingeSVC"]

_SHARED = """fit_intercept : bool, default True
        The intercept is not penalised.
    standardize : bool, default False
        Penalise the coefficients of features centred (if an intercept is fitted) and scaled to
        unit variance; sparse data stay sparse, and `coef_` is in the units of the data.
    class_weight : None, 'balanced' or dict
        Multiplies the sample weights.
    solver : str or Solver, default 'auto'
        'auto', {solvers}, or a solver object.
    solver_options : dict, optional
        Settings of a solver asked for by name.
    stopping : {{'gap', 'relative-change'}}
        Stop when the relative duality gap is at most ``tol``, or by rule (20) of Xu et al.
        (2015) at ``tol``. The certificate is computed either way.
    tol : float, default 1e-6
    max_iter : int, optional
    time_limit : float, optional
        Seconds for the whole fit.
    warm_start : bool, default False
        Start from the previous solution.
    callbacks : sequence of callables
        Called with a `proxmargin.minimize.Report` after each certificate.
    verbose : int, default 0
        1 shows progress on standard error for fits of more than two seconds.
    random_state : ignored
        The fit is deterministic."""

_ATTRIBUTES = """Attributes
    ----------
    coef_ : (1, n_features) if binary, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    classes_ : (n_classes,)
        A positive score means ``classes_[1]`` if binary; else the largest score wins.
    certificate_ : Certificate or CertificateList
        What the fit proves about its distance from the optimum.
    n_iter_, n_features_in_ : int
    feature_names_in_ : (n_features,), for data frames
    history_ : History, when one is among the callbacks"""


def _documented(solvers: str) -> Callable[[type], type]:
    """Fill the shared parts into a class docstring, so that each is written once."""

    def fill(cls: type) -> type:
        text = cls.__doc__ or ""
        cls.__doc__ = text.replace("<shared>", _SHARED.format(solvers=solvers)).replace(
            "<attributes>", _ATTRIBUTES
        )
        return cls

    return fill


_BINARY = "'b-pgh', 'b-pgh-2', 'gcd', 'fapg', 'fapg-ws', 'newton'"
_EVERY = _BINARY + ", for joint multiclass 'm-pgh', 'm-pgh-2', 'fapg', 'fapg-ws'"


class _ElasticNetEstimator(MarginEstimator):
    """What the three share: ``alpha`` and ``l1_ratio``."""

    alpha: float
    l1_ratio: float

    def _elastic_net(self) -> ElasticNet:
        check_number("alpha", self.alpha, low=0.0)
        check_number("l1_ratio", self.l1_ratio, low=0.0, high=1.0)
        return ElasticNet.from_mixture(float(self.alpha), float(self.l1_ratio))


@_documented(_EVERY)
class HuberizedSVC(_ElasticNetEstimator):
    """Huberized support vector machine with an elastic net (Xu et al. 2015, (2) and (3)).

    Binary: ``minimise mean phi(y (x'w + b)) + l1 |w|_1 + (l2/2) |w|^2 + (r/2) b^2`` with
    ``l1 = alpha * l1_ratio``, ``l2 = alpha * (1 - l1_ratio)``, ``r = intercept_ridge`` and phi
    the hinge with a quadratic zone of width ``delta``. More classes, all together:
    ``mean sum_{k != y} phi(-(x'w_k + b_k))`` with coefficients and intercepts that sum to zero
    over the classes.

    Parameters
    ----------
    alpha : float >= 0, default 0.01
        Strength of the penalty. `proxmargin.alpha_max` is the least one with all-zero coefficients.
        With 0 the certificate can prove an optimum only for separable data.
    l1_ratio : float in [0, 1], default 0.5
    delta : float > 0, default 1.0
    intercept_ridge : float >= 0, default 0.0
    multi_class : {'joint', 'ovr'}
    <shared>

    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HuberizedSVC(alpha=0.05, l1_ratio=0.9, standardize=True).fit(X, y)
    >>> model.certificate_.converged
    True
    """

    def __init__(
        self,
        alpha: float = 0.01,
        l1_ratio: float = 0.5,
        delta: float = 1.0,
        intercept_ridge: float = 0.0,
        multi_class: str = "joint",
        *,
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
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.delta = delta
        self.intercept_ridge = intercept_ridge
        self.multi_class = multi_class
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

    def _margin_loss(self) -> MarginLoss:
        check_number("delta", self.delta, low=0.0, low_open=True)
        return HuberizedHinge(float(self.delta))

    def _intercept_strength(self) -> float:
        check_number("intercept_ridge", self.intercept_ridge, low=0.0)
        return float(self.intercept_ridge)


class _OneVsRestEstimator(_ElasticNetEstimator):
    """Parameters of the estimators whose only form for more classes is one-vs-rest."""

    _joint_allowed = False

    def __init__(
        self,
        alpha: float = 0.01,
        l1_ratio: float = 0.5,
        multi_class: str = "ovr",
        *,
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
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.multi_class = multi_class
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


@_documented(_BINARY)
class SquaredHingeSVC(_OneVsRestEstimator):
    """Squared hinge with an elastic net (Ito et al. 2017, (28), with ``C = 1 / (n l1)``).

    ``minimise mean [1 - y (x'w + b)]_+^2 + l1 |w|_1 + (l2/2) |w|^2`` with a free intercept.

    Parameters
    ----------
    alpha : float >= 0, default 0.01
        Strength of the penalty. `proxmargin.alpha_max` is the least one with all-zero coefficients.
        With 0 the certificate can prove an optimum only for separable data.
    l1_ratio : float in [0, 1], default 0.5
        ``l1 = alpha * l1_ratio``, ``l2 = alpha * (1 - l1_ratio)``.
    multi_class : {'ovr'}
        One problem a class against the rest.
    <shared>

    <attributes>
    """

    def _margin_loss(self) -> MarginLoss:
        return SquaredHinge()


@_documented(_BINARY)
class SparseLogisticRegression(_OneVsRestEstimator):
    """Logistic regression with an elastic net (Ito et al. 2017, (27), with ``C = 1 / (n l1)``).

    ``minimise mean log(1 + exp(-y (x'w + b))) + l1 |w|_1 + (l2/2) |w|^2``, free intercept.

    Parameters
    ----------
    alpha : float >= 0, default 0.01
        Strength of the penalty. `proxmargin.alpha_max` is the least one with all-zero coefficients.
        With 0 the certificate can prove an optimum only for separable data.
    l1_ratio : float in [0, 1], default 0.5
        ``l1 = alpha * l1_ratio``, ``l2 = alpha * (1 - l1_ratio)``.
    multi_class : {'ovr'}
        One problem a class against the rest.
    <shared>

    <attributes>
    """

    def _margin_loss(self) -> MarginLoss:
        return Logistic()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (n_samples, n_classes), rows summing to one.

        Binary: ``1 / (1 + exp(-score))``. More classes: these for each class against the rest,
        divided by their sum.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        each = expit(scores)
        total = each.sum(axis=1, keepdims=True)
        even = np.full_like(each, 1.0 / each.shape[1])
        return np.divide(each, total, out=even, where=total > 0)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
