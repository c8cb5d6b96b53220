"""Types of what many rooms pass on: arrays, matrices, records, estimators, frames, axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # optional, or slow to import
    import pandas as pd
    from matplotlib.axes import Axes as PlotAxes
    from scipy import sparse

Array: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]  # positions of samples, features or classes
Mask: TypeAlias = NDArray[np.bool_]
Values: TypeAlias = NDArray[Any]  # of numbers, text or objects
Matrix: TypeAlias = "Values | sparse.csr_array | sparse.csc_array"  # data in memory
Record: TypeAlias = dict[str, Any]  # settings by name, a row of a table, an object of JSON
Facts: TypeAlias = Mapping[str, Any]  # a record that is only read
# of this library, of scikit-learn, which has no types, or as theirs: they have no base in common
Estimator: TypeAlias = Any
Frame: TypeAlias = "pd.DataFrame"
Column: TypeAlias = "pd.Series[Any]"
Axes: TypeAlias = "PlotAxes"
