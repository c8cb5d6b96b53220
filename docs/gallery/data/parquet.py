"""
A Parquet folder that is never loaded
=====================================

``open_dataset`` reads a folder chunk by chunk, once for each pass over the data. The
coefficients are those of a fit in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from proxmargin import SparseLogisticRegression, open_dataset

folder = Path(tempfile.mkdtemp(), "visits")
folder.mkdir()
rng = np.random.default_rng(0)
parts = []
for month in range(4):
    part = pd.DataFrame(rng.standard_normal((20_000, 6)), columns=list("abcdef"))
    part["city"] = rng.choice(["Oslo", "Rome", "Lima"], len(part))
    score = part["a"] - part["b"] + (part["city"] == "Rome")
    part["returned"] = np.where(score + rng.logistic(size=len(part)) > 0, "yes", "no")
    part.to_parquet(folder / f"{month}.parquet")
    parts.append(part)

# %%
# Columns of text become indicators of the categories that are stated:

columns = dict.fromkeys("abcdef") | {"city": ["Oslo", "Rome", "Lima"]}
dataset = open_dataset(folder, target="returned", columns=columns, chunk_rows=8_000)
model = SparseLogisticRegression(alpha=0.001, standardize=True).fit(dataset)
print(model.certificate_)
found = model.coefficients()
print(found)

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.barh(found["feature"][::-1], found["coefficient"][::-1])
axes.set(xlabel="coefficient", title="From 80,000 rows, 8,000 at a time")
plt.show()

# %%
# The same in memory, for comparison:

table = pd.concat(parts)
cities = [(table["city"] == each).astype(float).rename(f"city={each}") for each in columns["city"]]
X = pd.concat([table[list("abcdef")], *cities], axis=1).to_numpy()
same = SparseLogisticRegression(alpha=0.001, standardize=True).fit(X, table["returned"])
print(f"largest difference of coefficients: {np.abs(model.coef_ - same.coef_).max():.1e}")
print(f"accuracy: {model.score(dataset):.3f}")
