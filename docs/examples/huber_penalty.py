"""Penalties of one's own: Huber's function of each coefficient, and the sorted l1 norm.

With strength s and width d the first one is ``sum_j s h(w_j)``, ``h(w) = w^2 / (2 d)`` up to
``|w| = d`` and ``|w| - d / 2`` beyond: a ridge for small coefficients, an l1 norm for large ones.
Its conjugate is ``d v^2 / (2 s)`` for ``|v| <= s``. The second one (Bogdan et al., SLOPE, 2015) is
``sum_k lambda_k |w|_(k)``, the largest coefficient times the largest strength and so on; a dual
point is in the unit ball of the dual norm if its k largest entries sum to at most those of lambda,
for every k. Run this file to check both, and to fit models with them.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from proxmargin.penalties import CustomPenalty


@dataclass(frozen=True)
class HuberPenalty(CustomPenalty):
    strength: float = 0.05
    width: float = 0.5

    separable = True
    sign_invariant = True

    def value(self, coef):
        near = np.minimum(np.abs(coef), self.width)
        return self.strength * np.sum(near**2 / (2 * self.width) + np.abs(coef) - near)

    def prox(self, coef, step):
        shrunk = coef / (1 + step * self.strength / self.width)
        moved = coef - step * self.strength * np.sign(coef)
        return np.where(np.abs(shrunk) <= self.width, shrunk, moved)

    def conjugate(self, dual):
        if np.abs(dual).max() > self.strength:
            return np.inf
        return self.width * np.sum(dual**2) / (2 * self.strength)


@dataclass(frozen=True)
class SortedL1(CustomPenalty):
    first: float = 0.05
    last: float = 0.01

    sign_invariant = True

    def value(self, coef):
        return np.sort(np.abs(coef).ravel())[::-1] @ self._strengths(coef)

    def prox(self, coef, step):
        flat = np.abs(coef).ravel()
        order = np.argsort(-flat)
        shifted = flat[order] - step * self._strengths(coef)
        sizes = np.empty_like(flat)
        sizes[order] = np.maximum(isotonic_regression(shifted, increasing=False).x, 0)
        return np.sign(coef) * sizes.reshape(coef.shape)

    def dual_norm(self, dual):
        largest = np.sort(np.abs(dual).ravel())[::-1]
        return np.max(np.cumsum(largest) / np.cumsum(self._strengths(dual)))

    def _strengths(self, coef):
        return np.linspace(self.first, self.last, coef.size)


if __name__ == "__main__":
    from sklearn.datasets import load_breast_cancer

    from proxmargin import MarginClassifier
    from proxmargin.losses import Logistic
    from proxmargin.penalties import check_penalty

    X, y = load_breast_cancer(return_X_y=True)
    for penalty in (HuberPenalty(), SortedL1()):
        check_penalty(penalty, n_features=X.shape[1])
        model = MarginClassifier(Logistic(), penalty, standardize=True).fit(X, y)
        print(penalty, model.certificate_, sep="\n")
