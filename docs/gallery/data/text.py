"""
Text with TF-IDF
================

Sparse matrices are taken as they are. The texts are simulated from two topics, so that the page
needs no download; replace them by ``fetch_20newsgroups`` where there is a network.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from proxmargin import SparseLogisticRegressionCV

space = ["orbit", "moon", "rocket", "launch", "nasa", "shuttle", "satellite", "mars"]
medicine = ["doctor", "patient", "dose", "drug", "disease", "cancer", "health", "clinic"]
rng = np.random.default_rng(0)
common = np.array([f"word{k}" for k in range(5000)])
rarity = 1 / np.arange(5, 5005)
texts, topics = [], []
for k in range(1500):
    words = list(rng.choice(common, 60, p=rarity / rarity.sum()))
    words += list(rng.choice([space, medicine][k % 2], rng.integers(1, 5)))
    words += list(rng.choice([space, medicine][(k + 1) % 2], rng.integers(0, 2)))
    texts.append(" ".join(words))
    topics.append(["space", "medicine"][k % 2])

vectors = TfidfVectorizer()
X = vectors.fit_transform(texts[:1000])
print(f"{X.shape[0]} texts, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} of the entries")

model = SparseLogisticRegressionCV(alphas=30, cv=3).fit(X, topics[:1000])
print(model.certificate_)
print(f"accuracy on new texts: {model.score(vectors.transform(texts[1000:]), topics[1000:]):.3f}")

# %%
# The words that speak for one topic and the other:

names, coef = vectors.get_feature_names_out(), model.coef_[0]
order = np.argsort(coef)[[*range(8), *range(-8, 0)]]
figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
axes.barh(names[order], coef[order], color=np.where(coef[order] < 0, "C0", "C1"))
axes.set(xlabel="coefficient", title=f"{model.classes_[0]} (left), {model.classes_[1]} (right)")
plt.show()
