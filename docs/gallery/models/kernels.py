"""
Kernels on half moons, with support vectors
===========================================

A straight line cannot part two half moons. A Gaussian kernel can, and the samples that carry
its boundary are the support vectors: those on the margin, within it, or on the wrong side.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from proxmargin import DWD, SVC

X, y = make_moons(200, noise=0.2, random_state=0)
models = {
    "SVC, linear": SVC(standardize=True),
    "SVC, rbf": SVC(C=10, kernel="rbf", standardize=True),
    "DWD, rbf": DWD(kernel="rbf", standardize=True),
}
figure, row = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for axes, (name, model) in zip(row, models.items(), strict=True):
    model.fit(X, y)
    how = {"response_method": "decision_function", "plot_method": "contour", "ax": axes}
    lines = {"levels": [-1, 0, 1], "linestyles": ["--", "-", "--"], "colors": "k"}
    DecisionBoundaryDisplay.from_estimator(model, X, **how, **lines)
    axes.scatter(*X.T, c=y, cmap="coolwarm", s=12)
    if hasattr(model, "support_"):
        axes.scatter(*X[model.support_].T, s=50, facecolors="none", edgecolors="k", linewidths=0.6)
    axes.set_title(f"{name}: accuracy {model.score(X, y):.2f}")
plt.show()

# %%
# The certificate is one of the kernel itself, whatever the solver approximated on its way:

for name, model in models.items():
    print(f"{name}: {len(model.support_)} support vectors; {model.certificate_}")
