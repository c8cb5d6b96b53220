"""
The path of many genes
======================

How do the coefficients of a sparse model grow as its penalty becomes weaker? The picture is the
one that glmnet's vignette draws, of 2,000 genes in 62 samples of colon tissue. The data of Alon et
al. (1999) are not part of this project: ``docs/examples/colon_genes.py`` takes them where
``PROXMARGIN_DATA`` has them, and simulates genes otherwise. The first line that is printed says
which ones are drawn here.
"""

import colon_genes
import matplotlib.pyplot as plt

from proxmargin import PathDisplay, SparseLogisticRegression, margin_path

X, y, source = colon_genes.load()
print(f"{source}: {X.shape[1]} genes, {sum(y == 'tumor')} of {len(y)} are tumours")
path = margin_path(SparseLogisticRegression(l1_ratio=1.0, standardize=True), X, y)
PathDisplay(path).plot()
plt.show()

# %%
# Every one of the 100 models has a certificate:

print(f"{len(path.certificates)} strengths, largest relative gap", end=" ")
print(f"{max(each.relative_gap for each in path.certificates):.1e}")

# %%
# With a ridge part, genes that are correlated enter together:

mixed = margin_path(SparseLogisticRegression(l1_ratio=0.5, standardize=True), X, y)
PathDisplay(mixed).plot()
plt.show()
