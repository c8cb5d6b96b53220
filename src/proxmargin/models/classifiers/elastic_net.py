"""Classifiers with an elastic net: hinges (plain, huberized, squared) and the logistic loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import TINY
from proxmargin.data.designs import Design, StandardizedDesign
from proxmargin.data.inputs.aligned import feature_labels, is_labelled
from proxmargin.data.inputs.kinds import MultiClass, OneVsRest
from proxmargin.data.inputs.parameters import check_magnitude, check_number, check_strength
from proxmargin.data.inputs.targets import Targets
from proxmargin.functions.losses import (
    Hinge,
    HuberizedHinge,
    Logistic,
    Loss,
    MarginLoss,
    Multinomial,
    SquaredHinge,
)
from proxmargin.functions.penalties import ElasticNet, Penalty, WeightedElasticNet
from proxmargin.models.fitting.assembly import ALL, Assembly, Features, margin_sums
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.coefficients import SelectsFeatures
from proxmargin.models.fitting.documented import documented
from proxmargin.models.fitting.factors import (
    checked_bounds,
    checked_factors,
    scaled_bounds,
    unbounded,
    warn_if_separated,
)
from proxmargin.models.fitting.fitting import FitContext
from proxmargin.models.fitting.parameters import FeatureParameters, ThreadParameters
from proxmargin.models.fitting.predicting import LogisticProbabilities
from proxmargin.optimality.problem import Point
from proxmargin.runtime.types import Array, Record
from proxmargin.solvers.loop.report import Solution

# solvers for binary problems; for the hinge; and for all problems with an elastic net
BINARY = "'b-pgh', 'b-pgh-2', 'gcd', 'fapg', 'fapg-ws', 'newton'"
HINGE = (
    "'multiplier-newton', 'isvm1', 'isvm2', 'isvm3', 'admm', 'interior-point', "
    "'linear-program' (l1_ratio=1), 'dual-coordinate-descent' (l1_ratio=0)"
)
EVERY = (
    BINARY + ", for joint multiclass 'm-pgh', 'm-pgh-2', 'fapg', 'fapg-ws', 'fapg-ssnal', 'ssnal'"
)


@dataclass(eq=False, repr=False)
class ElasticNetEstimator(SelectsFeatures, ThreadParameters, MarginEstimator, FeatureParameters):
    """Base of the estimators with an elastic net: its strengths, factors and bounds."""

    alpha: float = 0.01
    l1_ratio: float = 0.5

    # the parameters that are numbers >= 0; true for those that must be positive
    _strengths: ClassVar[Mapping[str, bool]] = {"alpha": False}
    _sums_to_zero = True
    """Whether the coefficients of jointly fitted classes sum to zero."""

    @property
    def norm_share(self) -> float:
        """Share of the norm in the penalty; the rest is a ridge."""
        return float(self.l1_ratio)

    def _check_model(self) -> None:
        for name, positive in self._strengths.items():
            check_strength(name, getattr(self, name), low=0.0, low_open=positive)
        check_number("l1_ratio", self.l1_ratio, low=0.0, high=1.0)

    @abstractmethod
    def _margin_loss(self) -> MarginLoss:
        """The loss of one margin."""

    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        """The elastic net, with the factors and bounds of the features if given."""
        net = ElasticNet.from_mixture(float(self.alpha), float(self.l1_ratio))
        if self.penalty_factor is None and self.bounds is None:
            return net
        labels = feature_labels(self)
        factors = checked_factors(self.penalty_factor, design.n_features, labels)
        if factors is not None:
            strongest = float(self.alpha) * float(factors.max())
            check_magnitude("alpha times penalty_factor", strongest, positive=False)
        bounds = checked_bounds(self.bounds, design.n_features, labels)
        lower, upper = unbounded(design.n_features) if bounds is None else bounds
        if bounds is not None and isinstance(design, StandardizedDesign):
            lower, upper = scaled_bounds(bounds, design.scale)
        joint = targets.classes.size > 2 and self.multi_class == "joint"
        unpenalised = np.empty(0, np.intp) if factors is None else np.flatnonzero(factors == 0)
        if not joint:
            lower, upper = self._without_constants(design, unpenalised, lower, upper)
            unpenalised = unpenalised[lower[unpenalised] < upper[unpenalised]]
        self._check_factors(unpenalised.size, bounds, targets, joint)
        return WeightedElasticNet(net, 1.0 if factors is None else factors, lower, upper)

    def _without_constants(
        self, design: Design, unpenalised: NDArray[np.intp], lower: Array, upper: Array
    ) -> tuple[Array, Array]:
        """The bounds, zero for unpenalised constant features, which duplicate a free intercept."""
        if not (unpenalised.size and self.fit_intercept and self.intercept_ridge == 0):
            return lower, upper
        lower, upper = lower.copy(), upper.copy()
        constant = unpenalised[design.remembered(_constant, unpenalised)]
        lower[constant] = upper[constant] = 0.0
        return lower, upper

    def _check_factors(
        self, free: int, bounds: tuple[Array, Array] | None, targets: Targets, joint: bool
    ) -> None:
        """Raise if the model does not support bounds, or ``free`` features without a penalty."""
        if joint and bounds is not None and self._sums_to_zero:
            raise ValueError(
                "bounds are of no use to classes that are fitted together with coefficients that "
                "sum to zero over the classes: use multi_class='ovr'"
            )
        if joint and free:
            raise ValueError(
                "penalty_factor must be > 0 where classes are fitted together: for features "
                "without a penalty use multi_class='ovr'"
            )
        # whose default is to fit classes together
        smooth = "HuberizedSVC with a small delta"
        smooth += " and multi_class='ovr'" if targets.classes.size > 2 else ""
        if free and not np.isfinite(self._margin_loss().smoothness):
            raise ValueError(
                "penalty_factor must be > 0 for the hinge loss, which is not smooth: for features "
                f"without a penalty use {smooth}"
            )
        kinked = not np.isfinite(self._margin_loss().smoothness) and self.l1_ratio == 1
        finite = bounds is not None and any(np.any(np.isfinite(b) & (b != 0)) for b in bounds)
        if kinked and finite:
            raise ValueError(
                "bounds must be 0 or infinite for the hinge loss with l1_ratio=1: use "
                f"l1_ratio < 1, or {smooth}"
            )
        if free >= targets.codes.size:
            raise ValueError(
                f"penalty_factor is zero for {free} features, which must be fewer than the "
                f"{targets.codes.size} samples"
            )

    def _in_order(self) -> Record:
        found: Record = {}
        features = self.n_features_in_, feature_labels(self)
        if is_labelled(self.penalty_factor):
            found["penalty_factor"] = checked_factors(self.penalty_factor, *features)
        sides = self.bounds if isinstance(self.bounds, list | tuple) else (self.bounds,)
        if any(map(is_labelled, sides)):
            found["bounds"] = checked_bounds(self.bounds, *features)
        return found

    def _publish(self, assembly: Assembly, solutions: list[Solution], context: FitContext) -> None:
        super()._publish(assembly, solutions, context)
        if self.alpha < TINY or self.penalty_factor is not None:  # a subnormal one vanishes
            warn_if_separated(assembly.problems)

    def _published(
        self, assembly: Assembly, points: Sequence[Point], features: Features = ALL
    ) -> tuple[Array, Array]:
        """Coefficients clipped to their bounds, which rounding of the scales may have violated."""
        coef, intercept = assembly.published(points, features)
        if self.bounds is None:
            return coef, intercept
        bounds = checked_bounds(self.bounds, assembly.scale.size, feature_labels(self))
        assert bounds is not None
        return np.clip(coef, *(side[features] for side in bounds)), intercept


def _constant(design: Design, index: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether each of some features is the same in all samples."""
    columns = design.dense_columns(index)
    found: NDArray[np.bool_] = np.all(columns == columns[:1], axis=0)
    return found


@documented(EVERY, unpenalised="one_column")
@dataclass(eq=False, repr=False)
class HuberizedSVC(ElasticNetEstimator):
    """Huberized support vector machine with an elastic net (Xu et al. 2015, (2) and (3)).

    Binary: ``minimise mean phi(y (x'w + b)) + l1 |w|_1 + (l2/2) |w|^2 + (r/2) b^2`` with
    ``l1 = alpha * l1_ratio``, ``l2 = alpha * (1 - l1_ratio)``, ``r = intercept_ridge`` and phi
    the hinge with a quadratic zone of width ``delta``. More classes, all together:
    ``mean sum_{k != y} phi(-(x'w_k + b_k))`` with coefficients and intercepts that sum to zero
    over the classes.

    Parameters
    ----------
    <strengths>
    delta : float > 0, default 1.0
    intercept_ridge : float >= 0, default 0.0
        With ``standardize`` on the intercept of the centred features.
    multi_class : {'joint', 'ovr'}
        With 'joint', more than two classes take no ``bounds``, and factors above 0 only.
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

    delta: float = 1.0
    intercept_ridge: float = 0.0
    multi_class: MultiClass = "joint"

    _strengths = {"alpha": False, "delta": True, "intercept_ridge": False}

    def _margin_loss(self) -> MarginLoss:
        return HuberizedHinge(float(self.delta))


@dataclass(eq=False, repr=False)
class _OneVsRestEstimator(ElasticNetEstimator):
    """Base of the estimators that fit more than two classes one-vs-rest only."""

    _joint_allowed = False

    multi_class: OneVsRest = "ovr"


@documented(HINGE)
class ElasticNetSVC(_OneVsRestEstimator):
    """Doubly regularised support vector machine: hinge with an elastic net (Liu et al. 2013, (2)).

    ``minimise mean [1 - y (x'w + b)]_+ + l1 |w|_1 + (l2/2) |w|^2`` with a free intercept. With
    ``l1_ratio=0`` it is `SVC` with ``C = 1 / (n alpha)``, with ``l1_ratio=1`` a linear program.
    Penalty factors must be positive.

    Parameters
    ----------
    <strengths>
    multi_class : {'ovr'}
        One problem a class against the rest.
    <shared>

    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import ElasticNetSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ElasticNetSVC(alpha=0.02, l1_ratio=0.9, standardize=True).fit(X, y)
    >>> model.certificate_.converged
    True
    """

    def _margin_loss(self) -> MarginLoss:
        return Hinge()


@documented(BINARY, unpenalised="few_features")
class SquaredHingeSVC(_OneVsRestEstimator):
    """Squared hinge with an elastic net (Ito et al. 2017, (28), with ``C = 1 / (n l1)``).

    ``minimise mean [1 - y (x'w + b)]_+^2 + l1 |w|_1 + (l2/2) |w|^2`` with a free intercept.

    Parameters
    ----------
    <strengths>
    multi_class : {'ovr'}
        One problem a class against the rest.
    <shared>

    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SquaredHingeSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SquaredHingeSVC(alpha=0.1, l1_ratio=1.0, standardize=True).fit(X, y)
    >>> model.certificate_.converged, int((model.coef_ != 0).sum())
    (True, 7)
    """

    def _margin_loss(self) -> MarginLoss:
        return SquaredHinge()


@documented(f"{EVERY}, 'class-newton' (l1_ratio > 0)", unpenalised="one_column")
@dataclass(eq=False, repr=False)
class SparseLogisticRegression(LogisticProbabilities, ElasticNetEstimator):
    """Logistic regression with an elastic net (Ito et al. 2017, (27), with ``C = 1 / (n l1)``).

    Binary: ``minimise mean log(1 + exp(-y (x'w + b))) + l1 |w|_1 + (l2/2) |w|^2`` with a free
    intercept. More classes, all together: the multinomial model ``minimise
    mean log sum_k exp(z_k - z_y) + l1 |W|_1 + (l2/2) |W|^2`` with ``z = W x + b``, whose
    intercepts sum to zero.

    Parameters
    ----------
    <strengths>
    multi_class : {'joint', 'ovr'}
        More than two classes: the multinomial model, which takes factors above 0 only, or one
        problem a class against the rest.
    <shared>

    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SparseLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseLogisticRegression(alpha=0.05, l1_ratio=1.0, standardize=True).fit(X, y)
    >>> model.certificate_.converged, int((model.coef_ != 0).sum())
    (True, 4)
    >>> model.predict_proba(X[:2]).round(3)
    array([[0.989, 0.011],
           [0.945, 0.055]])
    """

    multi_class: MultiClass = "joint"

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
