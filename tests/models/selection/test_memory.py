"""The folds of wide data are read where they are."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from proxmargin import HuberizedSVCCV, SparseLogisticRegressionCV
from proxmargin.models.paths.chord_path import NAME

N_SAMPLES = 600
N_FEATURES = 8_000  # 38 MB of float64
SHARE = 0.5  # of the data, that folds on one thread may take beside them


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (SparseLogisticRegressionCV, {}),
        (HuberizedSVCCV, {"standardize": True}),
    ],
)
def test_ten_folds_of_wide_data_make_no_copy(kind: Any, settings: Any, order: Any) -> None:
    rng = np.random.default_rng(3)
    X = np.asarray(rng.standard_normal((N_SAMPLES, N_FEATURES)), order=order)
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(N_SAMPLES) > 0, "b", "a")
    model = kind(alphas=4, eps=0.9, cv=10, **settings)
    model.fit(np.asarray(X[:, :400], order=order), y)  # loads kernels
    tracemalloc.start()
    try:
        model.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {one.solver for one in model.path_.certificates} == {NAME}
    assert peak < SHARE * X.nbytes
