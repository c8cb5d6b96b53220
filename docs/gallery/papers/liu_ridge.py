"""
Liu et al. (2013), Table 2: the ridge part finds correlated features
====================================================================

Ten correlated features of 500 tell the classes apart. A lasso selects some of them; the larger
the ridge part, the more of the ten are selected. The picture draws a row of the table.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import SVC, ElasticNetSVC

ridges = (1, 2, 3, 4, 5, 10, 20, 30, 40, 50)
rng = np.random.default_rng(0)
y = np.repeat([-1, 1], 25)
correlation = np.full((10, 10), 0.5) + 0.5 * np.eye(10)
root = np.linalg.cholesky(correlation)
found = np.zeros((5, len(ridges)))
for draw in range(len(found)):
    X = rng.standard_normal((50, 500))
    X[:, :10] = X[:, :10] @ root.T + y[:, None]
    lasso = 10 * np.abs(SVC(C=1).fit(X, y).coef_).max()  # lambda1, as in the paper
    for position, ridge in enumerate(ridges):
        l1, l2 = lasso / 50, ridge / 50  # of the mean loss, where the paper has the sum
        model = ElasticNetSVC(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2)).fit(X, y)
        found[draw, position] = np.count_nonzero(model.coef_[0, :10])

figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(ridges, found.T, "o", color="0.7", markersize=4)
axes.plot(ridges, found.mean(axis=0), "o-", label="mean of five data sets")
axes.set(
    xlabel="lambda2",
    ylabel="true features selected, of ten",
    title="Correlated features",
    ylim=(0, 10.5),
)
axes.legend()
plt.show()

# %%
# The same fit by the method of the paper, an iterated support vector machine, and the default:

for solver in ("isvm2", "auto"):
    model = ElasticNetSVC(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), solver=solver, tol=1e-4)
    print(model.fit(X, y).certificate_)
