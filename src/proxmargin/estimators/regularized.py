"""C-SVM, l2-SVM and logistic regression with a ridge, linear or with a kernel."""

from __future__ import annotations

import numpy as np

from proxmargin.estimators.documented import KERNEL_ATTRIBUTES, KERNEL_PARAMETERS, documented
from proxmargin.estimators.kernel_machine import RegularizedMachine
from proxmargin.estimators.probabilities import LogisticProbabilities
from proxmargin.losses import Hinge, Logistic, MarginLoss, SquaredHinge
from proxmargin.solvers.box.decomposition import BlockDecomposition

__all__ = ["L2SVC", "SVC", "LogisticRegression"]

_FIRST_ORDER = "'apg', 'fapg-guaranteed', 'fapg', 'fapg-star'"
_WARM = "; linear kernels only"


@documented(
    solvers="'interior-point', 'hinge-newton' (linear kernels), "
    f"'decomposition' (other kernels than 'linear'), {_FIRST_ORDER}",
    parameters=KERNEL_PARAMETERS,
    attributes=KERNEL_ATTRIBUTES,
    warm=_WARM,
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


@documented(
    solvers=f"'ridge-newton', 'decomposition' (other kernels than 'linear'), {_FIRST_ORDER}",
    parameters=KERNEL_PARAMETERS,
    attributes=KERNEL_ATTRIBUTES,
    warm=_WARM,
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
    """

    _most_decomposed = BlockDecomposition.block

    def _margin_loss(self) -> MarginLoss:
        return SquaredHinge()


@documented(
    solvers=f"'ridge-newton', {_FIRST_ORDER}",
    parameters=KERNEL_PARAMETERS,
    attributes=KERNEL_ATTRIBUTES,
    warm=_WARM,
)
class LogisticRegression(LogisticProbabilities, RegularizedMachine):
    """Logistic regression with a ridge (Ito et al. 2017, (7) with the logistic loss; dual (13)).

    ``minimise  C sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + |w|^2 / 2`` with a free intercept.

    Parameters
    ----------
    C : float > 0, default 1.0
    <shared>

    <attributes>
    """

    def _margin_loss(self) -> MarginLoss:
        return Logistic()
