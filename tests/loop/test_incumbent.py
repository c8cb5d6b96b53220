"""The best point of a run."""

from __future__ import annotations

import numpy as np

from proxmargin import NuSVC


def test_a_better_point_of_a_gap_of_zero() -> None:
    """The gap cannot fall below zero: the residual alone tells which point is better."""
    X = np.array([[5.65705415e-08], [1.01777168e-08], [5.53708447e-09]])
    model = NuSVC(kernel="rbf", gamma="auto", nu="0.1max")
    model.fit(X, [1, 0, 1], sample_weight=[1.0, 1.0, 3.0])
    assert model.certificate_.converged
