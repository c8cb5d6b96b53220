"""
Losses side by side
===================

How much does each model charge for a sample at a given margin? Left of zero the sample is on
the wrong side of the boundary.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import losses

margins = np.linspace(-2, 3, 501)
drawn = {
    "hinge: SVC, ElasticNetSVC": losses.Hinge(),
    "huberized hinge: HuberizedSVC": losses.HuberizedHinge(1.0),
    "squared hinge: L2SVC, SquaredHingeSVC": losses.SquaredHinge(),
    "logistic: LogisticRegression": losses.Logistic(),
}
figure, axes = plt.subplots(figsize=(7, 4))
for name, loss in drawn.items():
    axes.plot(margins, loss.value(margins), label=name)
axes.set(xlabel="margin", ylabel="loss", ylim=(0, 5))
axes.legend()
plt.show()
