"""
Are scikit-learn's defaults converged?
======================================

``certify`` takes a fitted model of scikit-learn, or any coefficients, and says how far they are
from the optimum of their own objective.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from proxmargin import certify

warnings.simplefilter("ignore")  # some of them say themselves that they have not converged
models = [LogisticRegression(), LinearSVC(), SVC(kernel="linear"), SGDClassifier(random_state=0)]
digits = load_digits()
even = (digits.data, digits.target % 2)
cancer = load_breast_cancer(return_X_y=True)
wine = load_wine(return_X_y=True)
sets = {
    "cancer": cancer,
    "cancer, scaled": (StandardScaler().fit_transform(cancer[0]), cancer[1]),
    "wine, class 0 or not": (StandardScaler().fit_transform(wine[0]), wine[1] == 0),
    "digits, even or odd": even,
}
gaps = {}
for name, (X, y) in sets.items():
    for model in models:
        gaps[name, type(model).__name__] = certify(model.fit(X, y), X, y).relative_gap
        print(f"{name:>22} {type(model).__name__:<20} {gaps[name, type(model).__name__]:.1e}")

# %%
# A relative gap of one means that the objective may be twice the optimum:

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for position, model in enumerate(models):
    heights = [gaps[name, type(model).__name__] for name in sets]
    places = [k + 0.2 * position for k in range(len(sets))]
    axes.bar(places, heights, width=0.18, label=type(model).__name__)
axes.set(yscale="log", ylabel="certified relative gap", title="Defaults of scikit-learn")
axes.set_xticks([k + 0.3 for k in range(len(sets))], sets)
axes.axhline(1e-6, color="k", linestyle="--", linewidth=0.8)
axes.text(3.8, 1.3e-6, "tol of proxmargin", ha="right", fontsize=9)
axes.legend()
plt.show()
