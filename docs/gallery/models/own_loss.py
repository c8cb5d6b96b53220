"""
A loss of your own
==================

A loss of the margin is a class with a value, its derivative and its conjugate. Here is the
hinge smoothed by entropy. The conjugate is what the certificate is computed with.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit, rel_entr, xlog1py, xlogy
from sklearn.datasets import load_breast_cancer

from proxmargin import MarginClassifier
from proxmargin.losses import Hinge, Logistic, MarginLoss
from proxmargin.penalties import ElasticNet


@dataclass(frozen=True)
class EntropyHinge(MarginLoss):
    """``width log(1 + exp((1 - t) / width))``: the hinge as the width goes to zero."""

    width: float = 0.5

    is_strictly_convex = True
    has_linear_piece = False
    dual_bound = 1.0

    @property
    def smoothness(self):
        return 0.25 / self.width

    def value(self, t):
        return self.width * np.logaddexp(0.0, (1.0 - t) / self.width)

    def descent(self, t):  # minus the derivative
        return expit((1.0 - t) / self.width)

    def curvature(self, t):
        u = (1.0 - t) / self.width
        return expit(u) * expit(-u) / self.width

    def conjugate(self, a):  # of the negative dual point, which is between 0 and 1
        inside = np.clip(a, 0.0, 1.0)
        entropy = xlogy(inside, inside) + xlog1py(1.0 - inside, -inside)
        return np.where(inside == a, self.width * entropy - a, np.inf)

    def conjugate_slope(self, a):
        return self.width * logit(a) - 1.0

    def fenchel_young(self, t, a):  # value(t) + conjugate(a) + a t, without cancellation
        p = self.descent(t)
        return self.width * (rel_entr(a, p) + rel_entr(1.0 - a, self.descent(2.0 - t)))

    def prox(self, t, step):
        return 1.0 + self.width * Logistic().prox((t - 1.0) / self.width, step / self.width)


margins = np.linspace(-1.5, 3.5, 301)
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for width in (0.1, 0.5, 1.0):
    axes.plot(margins, EntropyHinge(width).value(margins), label=f"width {width}")
axes.plot(margins, Hinge().value(margins), "k--", label="hinge")
axes.set(xlabel="margin", ylabel="loss", title="The hinge, smoothed by entropy")
axes.legend()
plt.show()

# %%
# Any penalty goes with it, and the fit is certified:

X, y = load_breast_cancer(return_X_y=True)
model = MarginClassifier(EntropyHinge(), ElasticNet(0.01, 0.0), standardize=True).fit(X, y)
print(model.certificate_)
print((model.coef_ != 0).sum(), "of", X.shape[1], "features")
