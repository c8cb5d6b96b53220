"""Small joint models take few and cheap steps: bounds on work, not on seconds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from proxmargin import HuberizedSVC
from proxmargin.solvers.augmented import dual_newton_systems
from proxmargin.solvers.callbacks import History

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.01, 0.001])
def test_polishing_ends_at_rounding(alpha: float, l1_ratio: float) -> None:
    history = History()
    HuberizedSVC(alpha=alpha, l1_ratio=l1_ratio, callbacks=[history]).fit(X, Y)
    gaps = np.array(history.column("relative_gap"))
    far_below = np.flatnonzero(gaps <= 1e-9)
    assert gaps.min() <= 1e-7
    assert not far_below.size or len(gaps) - 1 - far_below[0] <= 3


def test_few_features_are_the_side_of_the_systems_of_many_samples(monkeypatch) -> None:
    def refused(system: object, gradient: object) -> None:
        raise AssertionError("a system of all dual coordinates")

    monkeypatch.setattr(dual_newton_systems, "_dual_direction", refused)
    assert HuberizedSVC().fit(X, Y).certificate_.converged
