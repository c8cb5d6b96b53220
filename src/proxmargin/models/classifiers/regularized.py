"""C-SVM, l2-SVM and logistic regression with a ridge, linear or with a kernel."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from proxmargin.data.designs import Design
from proxmargin.data.inputs.kinds import KernelChoice, OneVsRest, Width
from proxmargin.data.inputs.parameters import check_strength
from proxmargin.data.inputs.targets import Targets, total_price
from proxmargin.functions.losses import Hinge, Logistic, MarginLoss, SquaredHinge
from proxmargin.functions.penalties import Penalty, Ridge
from proxmargin.models.classifiers.kernel_machine import KernelMachine
from proxmargin.models.fitting.documented import documented_kernels
from proxmargin.models.fitting.predicting import LogisticProbabilities
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.shared.batched_labels import (
    Axes,
    DualBoxes,
    FitsLabelings,
    Ridges,
    fit_labelings,
    suits,
)

_FIRST_ORDER = "'apg', 'fapg-guaranteed', 'fapg', 'fapg-star'"

# samples up to which an l2-SVM is decomposed: most of its weights are positive, so that K beta
# costs nearly the whole kernel, and factors of low rank take less time for more samples
MOST_CURVED = 20_000


@dataclass(eq=False, repr=False)
class RegularizedMachine(KernelMachine):
    """``minimise  C sum_i s_i phi(y_i f(x_i)) + |f|^2 / 2`` for a loss phi of one margin."""

    norm_share: ClassVar[float] = 0.0
    """Share of the norm in the penalty; the rest is a ridge."""

    C: float = 1.0
    kernel: KernelChoice = "linear"
    gamma: Width = "scale"
    degree: int = 3
    coef0: float = 0.0
    multi_class: OneVsRest = "ovr"

    def _check_model(self) -> None:
        super()._check_model()
        check_strength("C", self.C, low=0.0, low_open=True)

    @abstractmethod
    def _margin_loss(self) -> MarginLoss:
        """The loss of one margin."""

    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        return Ridge(1.0 / total_price(float(self.C), targets))

    def _of_labelings(self, axes: Axes, signs: Array) -> FitsLabelings | None:
        loss = self._margin_loss()
        if not np.isfinite(loss.smoothness):
            return None
        ridges = Ridges(1.0 / (float(self.C) * signs.shape[0]))
        return partial(fit_labelings, loss, penalty=ridges)

    def _objective_scale(self, problem: Problem) -> float:
        return float(self.C) * problem.loss.sample_count


@documented_kernels(
    "'dual-coordinate-descent', 'active-set', 'interior-point', 'multiplier-newton' "
    "(linear kernels), "
    f"'decomposition' (other kernels than 'linear'), {_FIRST_ORDER}"
)
class SVC(RegularizedMachine):
    """C-support vector machine (Ito et al. 2017, (7) with the hinge; dual (11)).

    ``minimise  C sum_i s_i [1 - y_i (x_i'w + b)]_+ + |w|^2 / 2`` with a free intercept.

    Parameters
    ----------
    C : float > 0, default 1.0
    <shared>

    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC(kernel="rbf", standardize=True).fit(X, y)
    >>> model.certificate_.converged
    True
    """

    _most_decomposed = np.inf

    def _margin_loss(self) -> MarginLoss:
        return Hinge()

    def _of_labelings(self, axes: Axes, signs: Array) -> FitsLabelings | None:
        return DualBoxes(upper=float(self.C), target=1.0) if suits(axes) else None


@documented_kernels(
    "'ridge-newton', 'active-set', 'dual-coordinate-descent' (linear kernels), "
    f"'decomposition' (other kernels than 'linear'), {_FIRST_ORDER}"
)
class L2SVC(RegularizedMachine):
    """l2-support vector machine (Ito et al. 2017, (7) with the squared hinge; dual (12)).

    ``minimise  C sum_i s_i [1 - y_i (x_i'w + b)]_+^2 + |w|^2 / 2`` with a free intercept. (12) is
    printed without the linear term ``-sum_i a_i`` of the conjugate.

    Parameters
    ----------
    C : float > 0, default 1.0
    <shared>

    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import L2SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = L2SVC(C=0.1, standardize=True).fit(X, y)
    >>> model.certificate_.converged, round(model.score(X, y), 2)
    (True, 0.99)
    """

    _most_decomposed = MOST_CURVED

    def _margin_loss(self) -> MarginLoss:
        return SquaredHinge()


@documented_kernels(f"'ridge-newton', {_FIRST_ORDER}")
class LogisticRegression(LogisticProbabilities, RegularizedMachine):
    """Logistic regression with a ridge (Ito et al. 2017, (7) with the logistic loss; dual (13)).

    ``minimise  C sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + |w|^2 / 2`` with a free intercept.

    Parameters
    ----------
    C : float > 0, default 1.0
    <shared>

    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(C=0.1, standardize=True).fit(X, y)
    >>> model.certificate_.converged, model.predict_proba(X[:2]).shape
    (True, (2, 2))
    """

    def _margin_loss(self) -> MarginLoss:
        return Logistic()
