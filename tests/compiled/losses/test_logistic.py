"""The logistic loss of the kernels, against extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proxmargin import LogisticRegression, SparseLogisticRegression
from proxmargin.compiled.losses.evaluation import logistic, logistic_descent, logistic_shares
from proxmargin.losses import Logistic

ULP = np.finfo(float).eps
MARGINS = np.concatenate(
    [np.linspace(-700.0, 700.0, 4001), np.linspace(-2.0, 2.0, 4001), [0.0, -0.0, 1e-300, -1e-9]]
)


def exact(t: np.ndarray) -> tuple[np.ndarray, ...]:
    """The loss, its descent and the two shares."""
    t = t.astype(np.longdouble)
    e = np.exp(-np.abs(t))
    near, far = 1 / (1 + e), e / (1 + e)
    return np.log1p(e) + np.maximum(-t, 0), np.where(t > 0, far, near), near, far


def test_to_eight_units_in_the_last_place() -> None:
    found = [(logistic(t), logistic_descent(t), *logistic_shares(t)) for t in MARGINS]
    for ours, true in zip(np.array(found).T, exact(MARGINS), strict=True):
        np.testing.assert_array_less(np.abs(ours - true), 8 * ULP * true)


@pytest.mark.parametrize("t", [709.0, 1e4, 1e300])
def test_far_losses_count_as_zero(t: float) -> None:
    phi = Logistic().scalars
    assert phi.value(t) == phi.descent(t) == phi.curvature(t) == 0.0
    assert phi.value(-t) == t
    assert phi.descent(-t) == 1.0


@pytest.mark.parametrize("model", [LogisticRegression(), SparseLogisticRegression(alpha=0.1)])
@pytest.mark.parametrize("offset", [700.0, 708.0, 709.0, 740.0, 2000.0])
def test_what_offsets_explain_leaves_an_objective_of_zero(model: Any, offset: float) -> None:
    shift = np.array([-offset, offset])
    found = model.fit([[1.0], [-1.0]], [0, 1], offset=shift).certificate_
    assert found.converged
    assert 0.0 <= found.dual <= max(2 * np.exp(-np.longdouble(offset)), 3e-308)
