"""
Calibrated probabilities, and samples to reject
===============================================

Scores of a margin classifier are no probabilities. A map fitted to held-out scores makes them
so, and samples whose class is too uncertain can be left to a human.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from proxmargin import SVC, CalibratedMargin

X, y = make_classification(4000, 20, n_informative=6, flip_y=0.1, class_sep=0.7, random_state=0)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)

figure, axes = plt.subplots(figsize=(5, 5))
for method in ("sigmoid", "isotonic"):
    model = CalibratedMargin(SVC(standardize=True), method=method).fit(X, y)
    CalibrationDisplay.from_estimator(model, X_new, y_new, n_bins=10, name=method, ax=axes)
axes.set_title("Calibration on new samples")
plt.show()

# %%
# With ``reject_cost=c`` a sample is rejected if its most probable class is wrong with a
# probability above c. The more are rejected, the better are the others:

for cost in (0.5, 0.4, 0.3, 0.2, 0.1):
    model.set_params(reject_cost=cost)
    share = model.rejects(X_new).mean()
    score = model.score(X_new, y_new)
    print(f"cost {cost:.2f}: {share:4.0%} rejected, accuracy of the others {score:.3f}")
