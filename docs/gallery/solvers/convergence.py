"""
The methods of the papers against the default
=============================================

Certified gaps against passes over the data and seconds. Every point is a bound on the distance
from the optimum, so that no reference solution is needed.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import ConvergenceDisplay, ElasticNetSVC, History, HuberizedSVC

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 500))
y = X[:, :10].sum(axis=1) + rng.standard_normal(200) > 0


def fitted(model):
    return model.set_params(callbacks=[History(every=1)], tol=1e-6, max_iter=2000).fit(X, y)


# %%
# The huberized machine, by the proximal gradient method of Xu et al. (``b-pgh``), the accelerated
# method of Ito et al. (``fapg``), coordinate descent (``gcd``) and what ``auto`` takes:

HuberizedSVC(0.02).fit(X, y)  # so that the loading of kernels is not measured below
smooth = [fitted(HuberizedSVC(0.02, solver=name)) for name in ("b-pgh", "fapg", "gcd", "auto")]
print(smooth[-1].certificate_.solver, "because", smooth[-1].certificate_.because)
figure, row = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for axes, x in zip(row, ("n_passes", "seconds"), strict=True):
    ConvergenceDisplay.from_estimator(*smooth, x=x, ax=axes).ax_.set_xscale("log")
plt.show()

# %%
# The hinge, by the primal-dual method of Chierchia et al. (``fbpd``), an iterated machine of Liu
# et al. (``isvm2``), and ``auto``. ``fbpd`` slows down long before a gap of 1e-6:

ElasticNetSVC(0.02).fit(X, y)
hinge = [fitted(ElasticNetSVC(0.02, solver=name)) for name in ("fbpd", "isvm2", "auto")]
figure, row = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for axes, x in zip(row, ("n_passes", "seconds"), strict=True):
    ConvergenceDisplay.from_estimator(*hinge, x=x, ax=axes).ax_.set_xscale("log")
plt.show()
