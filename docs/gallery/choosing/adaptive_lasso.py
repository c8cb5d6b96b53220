"""
An adaptive lasso in ten lines
==============================

A lasso shrinks what it selects, and so selects too much. The adaptive lasso weighs the penalty
of each feature by the inverse of its coefficient in a first fit: strong features are hardly
shrunk, weak ones leave. ``penalty_factor`` has the weights.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import SparseLogisticRegression, SparseLogisticRegressionCV

rng = np.random.default_rng(0)
truth = np.zeros(200)
truth[:5] = 2.0
X = rng.standard_normal((400, 200))
y = X @ truth + rng.logistic(size=400) > 0

lasso = SparseLogisticRegressionCV(standardize=True).fit(X, y)
ridge = SparseLogisticRegression(alpha=0.05, l1_ratio=0.0, standardize=True).fit(X, y)
weights = 1 / np.abs(ridge.coef_[0])
adaptive = SparseLogisticRegressionCV(penalty_factor=weights / weights.mean(), standardize=True)
adaptive.fit(X, y)

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(truth[:30], "k_", markersize=12, label="truth")
axes.plot(lasso.coef_[0, :30], "C1o", label=f"lasso: {np.count_nonzero(lasso.coef_)} features")
label = f"adaptive lasso: {np.count_nonzero(adaptive.coef_)} features"
axes.plot(adaptive.coef_[0, :30], "C0s", markersize=4, label=label)
axes.set(xlabel="feature (the first 30 of 200)", ylabel="coefficient", title="Less shrinkage")
axes.legend()
plt.show()
