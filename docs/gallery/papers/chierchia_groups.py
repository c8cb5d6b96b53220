"""
Chierchia et al. (2015), Figure 1: errors and sparsity with group norms
=======================================================================

A multiclass machine whose features are switched on and off for all classes at once, with the
hinge and with two smooth losses. The paper has MNIST; here are the 8 by 8 digits of
scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from proxmargin import MulticlassSVC, critical_C

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16, y, train_size=150, stratify=y, random_state=0)
multiples = np.geomspace(1.2, 20, 5)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for loss in ("hinge", "squared_hinge", "logistic"):
    model = MulticlassSVC("group_linf", groups="features", loss=loss, tol=1e-3)
    least = critical_C(model, X, y)  # the least C with a coefficient
    errors, unused = [], []
    for multiple in multiples:
        model.set_params(C=multiple * least).fit(X, y)
        errors.append(1 - model.score(X_new, y_new))
        unused.append(1 - np.mean((model.coef_ != 0).any(axis=0)))
    left.semilogx(multiples, errors, "o-", label=loss)
    right.semilogx(multiples, unused, "o-", label=loss)
    best = int(np.argmin(errors))
    print(f"{loss:>13}: error {errors[best]:.3f} with {1 - unused[best]:.0%} of the pixels")
left.set(xlabel="C over the least C", ylabel="error on new digits", title="Errors")
right.set(xlabel="C over the least C", ylabel="share of unused pixels", title="Sparsity")
for axes in (left, right):
    axes.set_xticks(multiples, [f"{each:.2g}" for each in multiples])
    axes.minorticks_off()
left.legend()
plt.show()
