"""Extreme points of norms: they attain the dual norm, and cost what they add to the norm."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.penalties import (
    ElasticNet,
    GroupL2,
    GroupLinf,
    Groups,
    Penalty,
    SumToZero,
    SumToZeroGroups,
    WeightedElasticNet,
)
from proxmargin.solvers.programs.gauge_columns import gauge_columns

FACTORS = np.array([1.0, 0.5, 2.0, 1.5])
ACROSS = Groups.features(4)  # a group each feature, over the classes
WITHIN = Groups.within_classes([0, 0, 1, 1])  # two groups in each class
NORMS: dict[str, Penalty] = {
    "l1": ElasticNet(1.0),
    "factors": WeightedElasticNet(ElasticNet(1.0), FACTORS),
    "signs": WeightedElasticNet(ElasticNet(1.0), FACTORS, np.zeros(4)),
    "rows": SumToZero(ElasticNet(1.0)),
    "rows with factors": SumToZero(WeightedElasticNet(ElasticNet(1.0), FACTORS)),
    "linf": GroupLinf(ACROSS, 1.0, FACTORS),
    "linf within classes": GroupLinf(WITHIN, 1.0, FACTORS[:2]),
    "l2": GroupL2(ACROSS, 1.0, FACTORS),
    "linf rows": SumToZeroGroups(GroupLinf(ACROSS, 1.0, FACTORS)),
    "l2 rows": SumToZeroGroups(GroupL2(ACROSS, 1.0, FACTORS)),
    "linf blocks": SumToZeroGroups(GroupLinf(WITHIN, 1.0, FACTORS[:2])),
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("scaled", [False, True])
def test_a_column_costs_its_norm_and_attains_the_dual_norm(name: str, scaled: bool, rng) -> None:
    penalty, pulled = NORMS[name], rng.standard_normal((4, 3))
    gauge = gauge_columns(penalty)
    assert gauge is not None
    gauge = gauge.in_units(np.array([1e-6, 1.0, 3.0, 1e9])) if scaled else gauge
    norms = gauge.norms(pulled)
    wanted = np.flatnonzero(norms > 0)
    columns = gauge.columns(wanted, pulled)
    np.testing.assert_allclose(columns.norms(pulled), norms[wanted])
    assert norms.max() * gauge.unit == pytest.approx(penalty.critical_strength(pulled))
    for k in range(wanted.size):
        coef = columns.coef(np.eye(wanted.size)[k], (4, 3))
        assert penalty.value(coef) == pytest.approx(gauge.strength * columns.costs[k])
