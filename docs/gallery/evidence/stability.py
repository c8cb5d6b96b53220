"""
Stable features against a plain lasso
=====================================

Genes of a pathway are correlated, and a lasso takes one of them by chance. Which ones are
selected on most halves of the samples, and how many false ones does one have to expect among
them?
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import SparseLogisticRegression, StabilityDisplay, StabilitySelection

rng = np.random.default_rng(0)
y = np.repeat([0, 1], 60)
X = rng.standard_normal((120, 1000))
X[:, :5] += 1.2 * y[:, None]  # five genes that differ, each by itself
X[:, 5:10] = (X[:, [0]] + 0.3 * X[:, 5:10]) / np.hypot(1, 0.3)  # and five shadows of the first

lasso = SparseLogisticRegression(alpha=0.05, l1_ratio=1.0, standardize=True).fit(X, y)
print("one lasso:", lasso.get_support(indices=True))

# %%
# Stability selection, with at most one false feature expected. Correlated genes compete, so that
# the first gene and its shadows share their frequency:

stable = StabilitySelection(lasso, q=15, pfer=1, random_state=0).fit(X, y)
print("stable:", stable.get_support(indices=True), f"threshold {stable.threshold_:.2f}")
StabilityDisplay.from_estimator(stable, kind="bars")
plt.show()

# %%
# Clusters of features that are correlated by 0.7 or more are selected together:

joint = StabilitySelection(lasso, q=15, pfer=1, cluster=0.7, random_state=0).fit(X, y)
print("stable, by clusters:", joint.get_support(indices=True))
StabilityDisplay.from_estimator(joint)
plt.show()
