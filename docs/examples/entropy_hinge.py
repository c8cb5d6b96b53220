"""A loss of one's own: the hinge smoothed by entropy, in one file.

With p = 1 / (1 + exp((t - 1) / width)) the loss and its conjugate are

    phi(t)   = width log(1 + exp((1 - t) / width))          (the hinge as width goes to 0)
    phi*(-a) = -a + width (a log a + (1 - a) log(1 - a))    for a in [0, 1]

(Nesterov, Smooth minimization of non-smooth functions, 2005, section 4). The array formulas are
the definition; the scalar functions let the Newton methods for l1 norms use it. Run this file to
fit a sparse model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, rel_entr, xlog1py, xlogy

from proxmargin.compiled.losses.exponentials import relative_entropy
from proxmargin.compiled.losses.scalars import scalars
from proxmargin.losses import Logistic, MarginLoss


@scalars
class EntropyScalars(NamedTuple):
    """The loss in compiled kernels: `smoothness` first, then its parameters."""

    smoothness: float
    width: float

    def value(self, t: float) -> float:
        u = (1.0 - t) / self.width
        return self.width * (max(u, 0.0) + math.log1p(math.exp(-abs(u))))

    def descent(self, t: float) -> float:
        u = (1.0 - t) / self.width
        e = math.exp(-abs(u))
        return (1.0 if u > 0 else e) / (1.0 + e)

    def curvature(self, t: float) -> float:
        e = math.exp(-abs(1.0 - t) / self.width)
        return e / ((1.0 + e) * (1.0 + e)) / self.width

    def fenchel_young(self, t: float, a: float) -> float:
        if a <= 0.0:
            return self.value(t)
        if a >= 1.0:
            return self.value(2.0 - t)
        # the logarithms of p and 1 - p are -phi(2 - t) / width and -phi(t) / width
        p, log_p, log_q = self.descent(t), -self.value(2.0 - t), -self.value(t)
        near = relative_entropy(a, p, log_p / self.width)
        far = relative_entropy(1.0 - a, self.descent(2.0 - t), log_q / self.width)
        return self.width * (near + far)


@dataclass(frozen=True)
class EntropyHinge(MarginLoss):
    """``width log(1 + exp((1 - t) / width))``."""

    width: float = 0.1

    is_strictly_convex = True
    has_linear_piece = False
    dual_bound = 1.0

    @property
    def scalars(self) -> EntropyScalars:
        return EntropyScalars(self.smoothness, self.width)

    @property
    def smoothness(self) -> float:
        return 0.25 / self.width

    def value(self, t):
        return self.width * np.logaddexp(0.0, (1.0 - t) / self.width)

    def descent(self, t):
        return expit((1.0 - t) / self.width)

    def curvature(self, t):
        u = (1.0 - t) / self.width
        return expit(u) * expit(-u) / self.width

    def conjugate(self, a):
        inside = np.clip(a, 0.0, 1.0)
        entropy = xlogy(inside, inside) + xlog1py(1.0 - inside, -inside)
        return np.where(inside == a, self.width * entropy - a, np.inf)

    def conjugate_slope(self, a):
        return self.width * logit(a) - 1.0

    def fenchel_young(self, t, a):
        p = self.descent(t)
        return self.width * (rel_entr(a, p) + rel_entr(1.0 - a, self.descent(2.0 - t)))

    def prox(self, t, step):
        """The loss is ``width Logistic((t - 1) / width)``, whose prox is known."""
        return 1.0 + self.width * Logistic().prox((t - 1.0) / self.width, step / self.width)


if __name__ == "__main__":
    from sklearn.datasets import load_breast_cancer

    from proxmargin import MarginClassifier
    from proxmargin.penalties import ElasticNet

    X, y = load_breast_cancer(return_X_y=True)
    model = MarginClassifier(EntropyHinge(), ElasticNet(0.01, 0.0), standardize=True).fit(X, y)
    print(model.certificate_)
