"""
Cross-validation and the rule of one standard error
===================================================

Held-out losses along the path say how weak the penalty may be. The strength with the best mean
is one choice; the strongest within one standard error of it has fewer features for about the
same score.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import CVDisplay, SparseLogisticRegressionCV

rng = np.random.default_rng(1)
X = rng.standard_normal((120, 800))
y = X[:, :6].sum(axis=1) + rng.standard_normal(120) > 0

search = SparseLogisticRegressionCV(scoring="neg_log_loss", standardize=True).fit(X, y)
CVDisplay.from_estimator(search)
plt.show()

# %%
# The same search, by the rule of one standard error:

simple = SparseLogisticRegressionCV(selection="1se", scoring="neg_log_loss", standardize=True)
simple.fit(X, y)
for name, model in {"best": search, "one standard error": simple}.items():
    print(f"{name}: alpha {model.alpha_:.4f}, {np.count_nonzero(model.coef_)} features")
