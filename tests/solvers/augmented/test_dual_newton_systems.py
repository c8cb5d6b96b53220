"""Newton systems of the augmented Lagrangian: every way to solve them solves them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.compiled.clock import clock
from proxmargin.data.designs import DenseDesign, Design, SparseDesign
from proxmargin.losses import (
    CrammerSinger,
    Hinge,
    HuberizedHinge,
    Multinomial,
    PairwiseSquaredHinge,
    wrong_classes,
)
from proxmargin.penalties import (
    ElasticNet,
    GroupL2,
    GroupLinf,
    Groups,
    Penalty,
    Pinned,
    SumToZero,
    SumToZeroGroups,
)
from proxmargin.solvers.augmented import dual_newton_systems
from proxmargin.solvers.augmented.dual_newton_systems import DualNewtonSystem, newton_direction

N, P, K = 12, 9, 3
LABELS = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3])
PENALTIES: dict[str, Penalty] = {
    "l1": ElasticNet(0.8),
    "elastic net": ElasticNet(0.8, 0.3),
    "group l2": GroupL2(Groups.within_classes(LABELS), 0.9),
    "group l2 of features": GroupL2(Groups.features(P), 0.9),
    "group linf": GroupLinf(Groups.within_classes(LABELS), 0.9),
    "group linf of features": GroupLinf(Groups.features(P), 0.9),
    "sum-to-zero l1": SumToZero(ElasticNet(0.8)),
    "sum-to-zero elastic net": SumToZero(ElasticNet(0.8, 0.3)),
    "sum-to-zero group l2": SumToZeroGroups(GroupL2(Groups.features(P), 0.8)),
    "sum-to-zero group linf": SumToZeroGroups(GroupLinf(Groups.features(P), 0.8)),
    "sum-to-zero group l2 in classes": SumToZeroGroups(GroupL2(Groups.within_classes(LABELS), 0.8)),
}
INTERCEPTS: dict[str, Penalty] = {
    "free": SumToZero(ElasticNet(0.0)),
    "ridge": SumToZero(ElasticNet(0.0, 0.3)),
    "none": Pinned(),
}
CODES = np.arange(N) % K
WEIGHTS = np.where(np.arange(N) % 5 == 3, 0.0, 1.0) / 10.0
LOSSES = {
    "crammer-singer": CrammerSinger(CODES, WEIGHTS, K),
    "multinomial": Multinomial(CODES, WEIGHTS, K, 10.0),
    "squared hinge of pairs": PairwiseSquaredHinge(CODES, WEIGHTS, K, 10.0),
    "hinge": wrong_classes(Hinge(), CODES, WEIGHTS, K, 10.0),
    "huberized hinge": wrong_classes(HuberizedHinge(0.5), CODES, WEIGHTS, K, 10.0),
}


def made(loss: str, penalty: str, intercept: str, design: Design, rng) -> DualNewtonSystem:
    ts, tau, tau_b = 5.0, 0.7, 1.3
    dual = rng.standard_normal((N, K)) / N
    found = LOSSES[loss]
    return DualNewtonSystem(
        design=design,
        coef=PENALTIES[penalty].prox_jacobian(1.5 * rng.standard_normal((P, K)), tau),
        intercept=INTERCEPTS[intercept].prox_jacobian(rng.standard_normal((1, K)), tau_b),
        dual=found.conjugate_prox_jacobian(dual, 1 / ts),
        support=found.dual_support,
        tau=tau,
        tau_b=tau_b,
        ts=ts,
        floor=1e-3,
    )


WAYS = ["in the samples", "in the coefficients"]


@pytest.mark.pairwise
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_direction_solves_the_system(
    loss: str, penalty: str, intercept: str, way: str, rng, monkeypatch
) -> None:
    # sizes are made so that the way in question is taken
    if way == "in the samples":
        monkeypatch.setattr(dual_newton_systems, "FAR_CHEAPER", 0.0)
    else:
        monkeypatch.setattr(dual_newton_systems, "dual_length", lambda system: 1000)
    X = rng.standard_normal((N, P))
    for design in (DenseDesign(X), SparseDesign(sp.csr_matrix(X))):
        system = made(loss, penalty, intercept, design, rng)
        gradient = np.where(system.support, rng.standard_normal((N, K)), 0.0)
        direction = newton_direction(system, gradient, np.inf)
        np.testing.assert_allclose(system.apply(direction), gradient, atol=1e-9)
        assert not np.any(direction[~system.support])


@pytest.mark.parametrize("penalty", PENALTIES)
def test_conjugate_gradients_solve_the_system_too(penalty: str, rng, monkeypatch) -> None:
    monkeypatch.setattr(dual_newton_systems, "SMALL_SIDE", 0)
    monkeypatch.setattr(dual_newton_systems, "LARGEST_SIDE", 0)
    monkeypatch.setattr(dual_newton_systems, "CG_TOLERANCE", 1e-10)
    system = made("huberized hinge", penalty, "free", DenseDesign(rng.standard_normal((N, P))), rng)
    gradient = np.where(system.support, rng.standard_normal((N, K)), 0.0)
    direction = newton_direction(system, gradient, np.inf)
    np.testing.assert_allclose(system.apply(direction), gradient, atol=1e-7)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_product_and_no_factorisation_begins_after_the_deadline(penalty: str, rng) -> None:
    system = made("huberized hinge", penalty, "free", DenseDesign(rng.standard_normal((N, P))), rng)
    gradient = np.where(system.support, rng.standard_normal((N, K)), 0.0)
    passes = system.design.counter.passes
    late = newton_direction(system, gradient, deadline=clock() - 1.0)
    assert system.design.counter.passes - passes <= K + 2.0  # the diagonal, and one iteration
    assert np.all(late * gradient >= 0)  # along the preconditioned gradient
    assert late.any()


@pytest.mark.parametrize("penalty", PENALTIES)
def test_roots_of_jacobians_give_them_back(penalty: str, rng) -> None:
    for size in (0.5, 1.0, 2.0):
        jacobian = PENALTIES[penalty].prox_jacobian(size * rng.standard_normal((P, K)), 0.7)
        units = np.eye(P * K).reshape(-1, P, K)
        matrix = np.array([jacobian.apply(unit).T.ravel() for unit in units])
        matrix = matrix.reshape(P, K, -1).transpose(1, 0, 2).reshape(P * K, -1)
        built = np.zeros_like(matrix)
        roots, at = jacobian.roots(), 0
        for root in roots:
            dense = root.combined(np.eye(root.entries))
            for unit, column in zip(np.eye(root.size), dense.T, strict=True):
                np.testing.assert_allclose(root.times(unit), column, atol=1e-14)
            place = slice(at, at + root.entries)
            built[place, place] = dense @ dense.T
            at += root.entries
        np.testing.assert_allclose(built, matrix, atol=1e-13)
