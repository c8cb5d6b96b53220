"""
The path of many genes
======================

How do the coefficients of a sparse model grow as its penalty becomes weaker? The picture is the
one that glmnet's vignette draws. The data are simulated: 62 samples and 2,000 genes, as in the
colon data.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import PathDisplay, SparseLogisticRegression, margin_path

rng = np.random.default_rng(0)
y = np.repeat(["normal", "tumor"], [22, 40])
pathways = rng.standard_normal((62, 20))
pathways[y == "tumor", :4] += 1.2
X = rng.standard_normal((62, 2000))
X[:, :100] += 1.5 * np.repeat(pathways, 5, axis=1)

path = margin_path(SparseLogisticRegression(l1_ratio=1.0, standardize=True), X, y)
PathDisplay(path).plot()
plt.show()

# %%
# Every one of the 100 models has a certificate:

print(f"{len(path.certificates)} strengths, largest relative gap", end=" ")
print(f"{max(each.relative_gap for each in path.certificates):.1e}")

# %%
# With a ridge part, genes of one pathway enter together:

mixed = margin_path(SparseLogisticRegression(l1_ratio=0.5, standardize=True), X, y)
PathDisplay(mixed).plot()
plt.show()
