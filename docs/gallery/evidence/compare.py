"""
Compare all models on wine
==========================

One call scores the models by nested cross-validation on the same splits, with intervals, and
says which ones cannot be told apart.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from proxmargin import compare

data = load_wine(as_frame=True)
names = data.target_names[data.target]
found = compare(data.data, names, quick=True, name="wine", progress=False)
found

# %%
# The warning above is about this set: its rows are not in an order that says nothing.
#
# Full marks are not distinguishable from the best:

found.plot_scores()
plt.show()

# %%
# How the differences from the best are distributed, by the corrected resampled t-test:

found.tests().head()

# %%
# ``found.to_html("report.html")`` writes the report, and the winner is fitted to all samples:

print(found.recommended_model_)
