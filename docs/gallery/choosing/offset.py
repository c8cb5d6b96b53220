"""
An offset: a second model on top of a first
===========================================

Do genes say more than age and stage do? The first model's scores are the offset of the second
one, so that the genes have to explain what is left.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from proxmargin import LogisticRegression, SparseLogisticRegressionCV

rng = np.random.default_rng(0)
clinical, genes = rng.standard_normal((300, 2)), rng.standard_normal((300, 500))
score = 1.5 * clinical.sum(axis=1) + genes[:, :4].sum(axis=1)
y = score + rng.logistic(size=300) > 0
train, test = train_test_split(np.arange(300), test_size=100, random_state=0, stratify=y)

first = LogisticRegression(C=10).fit(clinical[train], y[train])
known = first.decision_function(clinical)
second = SparseLogisticRegressionCV(standardize=True)
second.fit(genes[train], y[train], offset=known[train])
print("genes used:", second.get_support(indices=True))

# %%
# Predictions take the offset, too. Held-out log-loss, lower is better:

alone = log_loss(y[test], first.predict_proba(clinical[test]))
both = log_loss(y[test], second.predict_proba(genes[test], offset=known[test]))
print(f"clinical alone {alone:.3f}, with genes {both:.3f}")

figure, axes = plt.subplots(figsize=(6, 2.2), layout="constrained")
axes.barh(["with genes", "clinical alone"], [both, alone], color=["C0", "C1"])
axes.set(xlabel="log-loss of held-out samples", title="What the genes add")
plt.show()
