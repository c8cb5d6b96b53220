"""
Several classes that share their features
=========================================

With an l1 norm each class picks features of its own. A group norm makes one group of the
coefficients of a feature in all classes: the list is the same for all of them, and shorter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from proxmargin import MulticlassSVC, critical_C

X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16, y[:600]
penalties = {"l1": None, "group_l2": "features", "group_linf": "features"}
figure, row = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for axes, (penalty, groups) in zip(row, penalties.items(), strict=True):
    model = MulticlassSVC(penalty, groups=groups, loss="squared_hinge", tol=1e-4)
    model.set_params(C=5 * critical_C(model, X, y)).fit(X, y)
    classes_using = (model.coef_ != 0).sum(axis=0).reshape(8, 8)
    image = axes.imshow(classes_using, cmap="viridis", vmin=0, vmax=10)
    axes.set(title=f"{penalty}: {np.count_nonzero(classes_using)} pixels", xticks=[], yticks=[])
    print(f"{penalty}: {model.certificate_}")
figure.colorbar(image, ax=row, label="classes that use the pixel")
plt.show()
