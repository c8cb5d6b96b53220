"""Every penalty, once."""

from __future__ import annotations

import numpy as np

from proxmargin.penalties import (
    Ball,
    ElasticNet,
    GroupL2,
    GroupLinf,
    Groups,
    Penalty,
    Pinned,
    Ridge,
    SumToZero,
    SumToZeroGroups,
    WeightedElasticNet,
)

WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0])
LOWER = np.array([-1.0, 0.0, -np.inf, -0.5])
UPPER = np.array([np.inf, 2.0, 0.0, 0.5])
# those of groups are of four features
PENALTIES: dict[str, Penalty] = {
    "nothing": Ridge(0.0),
    "ridge": Ridge(0.7),
    "elastic net": ElasticNet(0.3, 0.5),
    "l1": ElasticNet(0.3, 0.0),
    "elastic net without l1": ElasticNet(0.0, 0.5),
    "weighted elastic net": WeightedElasticNet(ElasticNet(0.3, 0.5), WEIGHTS),
    "weighted l1": WeightedElasticNet(ElasticNet(0.3), WEIGHTS),
    "bounded elastic net": WeightedElasticNet(ElasticNet(0.3, 0.5), WEIGHTS, LOWER, UPPER),
    "bounded l1": WeightedElasticNet(ElasticNet(0.3), WEIGHTS, LOWER, UPPER),
    "non-negative": WeightedElasticNet(ElasticNet(0.3, 0.5), lower=0.0),
    "some without a penalty": WeightedElasticNet(
        ElasticNet(0.3, 0.5), [0.0, 2.0, 0.0, 1.0], LOWER, UPPER
    ),
    "pinned": Pinned(),
    "ball": Ball(2.0, 1.5),
    "ball, p small": Ball(1.5, 1.5),
    "ball, p large": Ball(4.0, 2.0),
    "group l2": GroupL2(Groups.within_classes([1, 0, 1, 1]), 0.8),
    "group l2, weighted": GroupL2(Groups.of_members([[3], [0, 2], [1]], 4), 0.8, WEIGHTS[:3]),
    "group l2 of features": GroupL2(Groups.features(4), 0.8, WEIGHTS),
    "group linf": GroupLinf(Groups.within_classes([1, 0, 1, 1]), 0.8),
    "group linf, weighted": GroupLinf(Groups.of_members([[3], [0, 2], [1]], 4), 0.8, WEIGHTS[:3]),
    "group linf of features": GroupLinf(Groups.features(4), 0.8, WEIGHTS),
    "sum-to-zero elastic net": SumToZero(ElasticNet(0.3, 0.5)),
    "sum-to-zero l1": SumToZero(ElasticNet(0.3, 0.0)),
    "sum-to-zero weighted elastic net": SumToZero(
        WeightedElasticNet(ElasticNet(0.3, 0.5), WEIGHTS)
    ),
    "sum-to-zero weighted l1": SumToZero(WeightedElasticNet(ElasticNet(0.3), WEIGHTS)),
    "sum-to-zero ridge": SumToZero(ElasticNet(0.0, 0.5)),
    "sum-to-zero": SumToZero(ElasticNet(0.0, 0.0)),
    "sum-to-zero group l2": SumToZeroGroups(GroupL2(Groups.features(4), 0.8, WEIGHTS)),
    "sum-to-zero group linf": SumToZeroGroups(GroupLinf(Groups.features(4), 0.8, WEIGHTS)),
    "sum-to-zero group l2 in classes": SumToZeroGroups(
        GroupL2(Groups.of_members([[3], [0, 2, 1]], 4), 0.8, WEIGHTS[:2])
    ),
    "sum-to-zero group linf in classes": SumToZeroGroups(
        GroupLinf(Groups.of_members([[3], [0, 2, 1]], 4), 0.8, WEIGHTS[:2])
    ),
}
INTERCEPTS = {
    "binary": {"free": Ridge(0.0), "ridge": Ridge(0.3), "none": Pinned()},
    "multiclass": {
        "free": SumToZero(ElasticNet(0.0, 0.0)),
        "ridge": SumToZero(ElasticNet(0.0, 0.3)),
        "none": Pinned(),
    },
}


def into_domain(penalty: Penalty, coef: np.ndarray) -> np.ndarray:
    """The nearest coefficients at which the penalty is finite."""
    if isinstance(penalty, Pinned):
        return np.zeros_like(coef)
    if isinstance(penalty, WeightedElasticNet):
        return penalty.into_domain(coef)
    if isinstance(penalty, Ball):
        return penalty.prox(coef, 1.0)
    if penalty.sums_to_zero:
        return coef - coef.mean(axis=1, keepdims=True)
    return coef
