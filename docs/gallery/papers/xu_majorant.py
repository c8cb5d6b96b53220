"""
Xu et al. (2015), Figure 1: the upper bound of a step
=====================================================

The proximal gradient method replaces the loss by a quadratic upper bound that touches it at the
current point z, and goes to the minimiser of bound plus penalty. With one coefficient this can
be drawn.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin.losses import HuberizedHinge

rng = np.random.default_rng(0)
x = rng.standard_normal(50)
y = np.where(x + 0.5 * rng.standard_normal(50) > 0, 1, -1)
loss, l1, l2 = HuberizedHinge(1.0), 0.1, 0.1


def penalty(w):
    return l1 * np.abs(w) + l2 / 2 * w**2


def objective(w):
    return loss.value(np.outer(w, x * y)).mean(axis=1) + penalty(w)


z, L = 0.1, np.mean(x**2)  # L: a Lipschitz constant of the derivative of the mean loss
slope = -np.mean(loss.descent(z * x * y) * x * y)
height = loss.value(z * x * y).mean()
grid = np.linspace(-0.5, 2.0, 501)
bound = height + slope * (grid - z) + L / 2 * (grid - z) ** 2 + penalty(grid)
step = z - slope / L
new = np.sign(step) * max(abs(step) - l1 / L, 0) / (1 + l2 / L)  # the proximal step

figure, axes = plt.subplots(figsize=(7, 4))
axes.plot(grid, objective(grid), label="objective")
axes.plot(grid, bound, "--", label="upper bound at z")
points = np.array([z, new])
axes.plot(points, np.interp(points, grid, bound), "ko")
for name, point in {"z": z, "new point": new}.items():
    axes.annotate(
        name, (point, np.interp(point, grid, bound)), xytext=(5, 8), textcoords="offset points"
    )
axes.set(xlabel="coefficient", title="One step of the proximal gradient method")
axes.legend()
plt.show()

# %%
# The bound holds everywhere, and the step lowers the objective:

print("least distance of bound and objective:", f"{np.min(bound - objective(grid)):.1e}")
before, after = objective(points)
print(f"objective {before:.4f} at z, {after:.4f} at the new point")
