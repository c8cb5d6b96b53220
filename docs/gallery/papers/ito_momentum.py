"""
Ito et al. (2017), Figure 1: momentum and restarts
==================================================

The accelerated method adds momentum from step to step. Where the objective begins to rise it
restarts, with momentum zero, and waits twice as long before it may restart again.
"""

import matplotlib.pyplot as plt
import numpy as np

from proxmargin import History, NuSVC

rng = np.random.default_rng(0)
y = np.repeat([-1, 1], 500)
X = rng.standard_normal((1000, 100)) + 0.15 * y[:, None]

history = History(every=1)
options = {"patience": 2}  # iterations before the first restart
model = NuSVC(nu=0.5, solver="fapg", solver_options=options, tol=1e-8, callbacks=[history])
model.fit(X, y)
steps = history.to_frame()
restarts = steps["n_iter"][steps["restarts"].diff() > 0]
print(model.certificate_)
print("restarts at iterations", restarts.tolist())

figure, (upper, lower) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
upper.plot(steps["n_iter"], steps["extrapolation"])
upper.set(ylabel="momentum", title="Momentum vanishes at each restart")
excess = steps["objective"] - steps["objective"].min()
lower.semilogy(steps["n_iter"], excess.clip(lower=1e-14))
lower.set(xlabel="iterations", ylabel="objective above its least")
for axes in (upper, lower):
    for at in restarts:
        axes.axvline(at, color="0.7", linewidth=0.8)
plt.show()
