"""
A penalty of your own
=====================

The sorted l1 norm (SLOPE): the largest coefficient times the largest strength, the second times
the second, and so on. A norm needs its value, its proximal map and its dual norm; then fits
with any loss are certified. ``check_penalty`` tests the three against each other.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.datasets import load_breast_cancer

from proxmargin import MarginClassifier, SparseLogisticRegression
from proxmargin.losses import Logistic
from proxmargin.penalties import CustomPenalty, check_penalty


@dataclass(frozen=True)
class SortedL1(CustomPenalty):
    first: float = 0.05
    last: float = 0.01

    sign_invariant = True

    def value(self, coef):
        return np.sort(np.abs(coef).ravel())[::-1] @ self.strengths(coef)

    def prox(self, coef, step):
        flat = np.abs(coef).ravel()
        order = np.argsort(-flat)
        shifted = flat[order] - step * self.strengths(coef)
        sizes = np.empty_like(flat)
        sizes[order] = np.maximum(isotonic_regression(shifted, increasing=False).x, 0)
        return np.sign(coef) * sizes.reshape(coef.shape)

    def dual_norm(self, dual):
        largest = np.sort(np.abs(dual).ravel())[::-1]
        return np.max(np.cumsum(largest) / np.cumsum(self.strengths(dual)))

    def strengths(self, coef):
        return np.linspace(self.first, self.last, coef.size)


X, y = load_breast_cancer(return_X_y=True)
check_penalty(SortedL1(), n_features=X.shape[1])
slope = MarginClassifier(Logistic(), SortedL1(), standardize=True).fit(X, y)
print(slope.certificate_)

# %%
# Correlated features get coefficients of the same size, where a lasso picks one of them:

scales = X.std(axis=0)
lasso = SparseLogisticRegression(0.03, l1_ratio=1.0, standardize=True).fit(X, y)
figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
axes.stem(lasso.coef_[0] * scales, linefmt="C1-", markerfmt="C1o", basefmt="k-", label="lasso")
axes.stem(slope.coef_[0] * scales, linefmt="C0-", markerfmt="C0s", basefmt="k-", label="sorted l1")
axes.set(xlabel="feature", ylabel="coefficient per standard deviation", title="Sorted l1 and lasso")
axes.legend()
plt.show()
