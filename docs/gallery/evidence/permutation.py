"""
Do the classes differ at all? (DiProPerm)
=========================================

With more features than samples even labels drawn by chance can be separated. The test permutes
the labels, fits the model again each time, and asks whether the given labels are apart further.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import DWD, PermutationDisplay, permutation_test

rng = np.random.default_rng(0)
y = np.repeat(["control", "case"], 25)
noise = rng.standard_normal((50, 800))
signal = noise + 0.6 * (np.arange(800) < 40) * (y == "case")[:, None]

model = DWD(standardize=True)
for name, X in {"noise": noise, "signal": signal}.items():
    print(f"{name}: training accuracy {model.fit(X, y).score(X, y):.2f}")

# %%
# Both are separated perfectly. Only one of them is more than chance:

figure, row = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for axes, (name, X) in zip(row, {"noise": noise, "signal": signal}.items(), strict=True):
    test = permutation_test(model, X, y, n_permutations=500, random_state=0)
    PermutationDisplay(test).plot(axes)
    axes.set_title(f"{name}: p = {test.pvalue:.3f}", loc="left")
plt.show()
