"""What docs/errata.md says is checked: the printed formula fails, the right one holds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.paper import TABLES
from benchmarks.papers.xu import xu2015
from scipy.optimize import minimize_scalar
from sklearn.datasets import make_blobs

from proxmargin import HuberizedSVC, MulticlassSVC, SquaredHingeSVC

PAGE = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")


def blobs(samples: int, features: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(samples, features, centers=classes, cluster_std=4.0, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def squared_hinge_conjugate(a: float) -> float:
    """sup over t of -a t - [1 - t]_+^2, on a fine grid."""
    t = np.linspace(-50.0, 1.0, 510_001)
    return float(np.max(-a * t - np.maximum(1.0 - t, 0.0) ** 2))


def test_sections_that_are_named_exist() -> None:
    named = set(re.findall(r"`([XICL][A-Z]?\d+)`", PAGE.split("\n## ", 1)[1]))
    assert named
    assert named <= set(TABLES)


def test_huberized_hinge_of_all_classes_turns_the_sign_of_the_scores() -> None:
    X, y = blobs(90, 8, 3)
    model = HuberizedSVC(alpha=0.01, l1_ratio=0.5).fit(X, y)
    scores = model.decision_function(X)
    assert np.mean(model.classes_[scores.argmax(axis=1)] == y) > 0.6
    # (3) as printed is the same problem in -W, -b
    assert np.mean(model.classes_[(-scores).argmax(axis=1)] == y) < 0.3


def test_lipschitz_constant_of_all_classes_needs_no_factor() -> None:
    rng = np.random.default_rng(0)
    X, wrong = rng.standard_normal((20, 3)), rng.random((20, 4)) < 0.75
    ones = np.column_stack([X, np.ones(20)])
    blocks = [
        ones[mask].T @ ones[mask] / 20 for mask in wrong.T
    ]  # the Hessian where all are active
    largest = max(np.linalg.eigvalsh(block)[-1] for block in blocks)
    assert largest <= np.mean((ones**2).sum(axis=1))


def test_friedman_statistic_has_squares_of_mean_ranks() -> None:
    for printed, sets in ((xu2015.BINARY_FRIEDMAN, 10), (xu2015.MULTICLASS_FRIEDMAN, 10)):
        ranks = np.array([float(rank) for rank in printed.ranks])
        k = ranks.size
        factor, middle = 12 * sets / (k * (k + 1)), k * (k + 1) ** 2 / 4
        assert factor * ((ranks**2).sum() - middle) == pytest.approx(
            float(printed.statistic), abs=6e-3
        )
        assert abs(factor * (ranks.sum() - middle) - float(printed.statistic)) > 1.0


def test_relevance_of_genes_as_printed_is_zero_over_zero() -> None:
    rng = np.random.default_rng(0)
    gene, y = rng.standard_normal(12), np.repeat([0, 1, 2], [3, 4, 5])
    means = np.array([gene[y == k].mean() for k in y])
    assert abs((means - gene.mean()).sum()) < 1e-12
    assert abs((gene - means).sum()) < 1e-12


@pytest.mark.parametrize("a", [0.0, 0.5, 2.0, 7.0])
def test_conjugate_of_the_squared_hinge_has_a_linear_term(a: float) -> None:
    assert squared_hinge_conjugate(a) == pytest.approx(a**2 / 4 - a, abs=1e-6)


def test_largest_nu_is_of_the_smaller_class() -> None:
    fewer, more = 3, 9
    nu = 2 * fewer / (fewer + more)
    cap = 1 / ((fewer + more) * nu)
    assert fewer * cap == pytest.approx(0.5)  # what each class has to carry
    printed = 2 * more / (fewer + more)
    assert fewer / ((fewer + more) * printed) < 0.5


def test_risk_of_the_minimax_machine_is_convex_with_a_sum_only() -> None:
    def risk(w: np.ndarray, sign: float) -> float:
        return float(np.abs(w[0]) + sign * np.abs(w[1]))  # kappa 1, S+ = e1 e1', S- = e2 e2'

    ends = np.array([[0.0, 1.0], [0.0, -1.0]])
    for sign, convex in ((1.0, True), (-1.0, False)):
        middle, mean = risk(ends.mean(axis=0), sign), np.mean([risk(w, sign) for w in ends])
        assert bool(middle <= mean) is convex


def test_soft_threshold_is_one_over_the_lipschitz_constant() -> None:
    point, lipschitz = 2.0, 4.0
    found = minimize_scalar(
        lambda w: abs(w) + 0.5 * lipschitz * (w - point) ** 2, bounds=(-5.0, 5.0), method="bounded"
    )
    assert found.x == pytest.approx(point - 1 / lipschitz, abs=1e-5)


def test_coefficients_and_gap_of_a_dual_point() -> None:
    X, y = blobs(60, 4, 2)
    C = 0.7
    model = SquaredHingeSVC(alpha=1 / (C * len(y)), l1_ratio=0.0, tol=1e-10).fit(X, y)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    w, b = model.coef_[0], float(model.intercept_[0])
    short = np.maximum(1.0 - signs * (X @ w + b), 0.0)
    a = 2.0 * short
    direction = X.T @ (signs * a)
    assert w == pytest.approx(C * direction, rel=1e-4, abs=1e-6)  # not of norm one
    primal = (short**2).sum() + w @ w / (2 * C)
    nine = C / 2 * direction @ direction + (a**2 / 4 - a).sum()  # minimised
    assert primal + nine == pytest.approx(0.0, abs=1e-5 * primal)
    assert abs(primal - nine) > primal


def test_free_offsets_make_the_dual_points_of_classes_sum_to_zero() -> None:
    X, y = blobs(60, 4, 3)
    model = MulticlassSVC(loss="squared_hinge", penalty="l2", C=0.1, tol=1e-10).fit(X, y)
    scores = model.decision_function(X)
    rows, truth = np.arange(len(y)), np.searchsorted(model.classes_, y)
    slopes = 2.0 * np.maximum(1.0 + scores - scores[rows, truth][:, None], 0.0)
    slopes[rows, truth] = 0.0
    slopes[rows, truth] = -slopes.sum(axis=1)  # T'y restricted to the offsets
    assert np.abs(slopes.sum(axis=0)).max() < 1e-4 * np.abs(slopes).sum()


def test_one_against_all_pushes_the_own_class_up() -> None:
    z, scores = 1.0, np.array([-2.0, 2.0])  # of a sample of the class
    right = np.maximum(1.0 - z * scores, 0.0) ** 2
    printed = np.maximum(1.0 + z * scores, 0.0) ** 2
    assert right.argmin() == 1
    assert printed.argmin() == 0


def test_features_of_the_quadratic_norm_are_counted_over_the_classes() -> None:
    features, classes = 81 * 14 * 14, 10
    assert features * classes - 546 == 158_214


def test_update_of_the_copy_is_the_prox_of_the_l1_norm() -> None:
    rho, l1 = 50.0, 3.0
    for v in (-200.0, -1.0, 2.0, 40.0):
        found = minimize_scalar(
            lambda u, v=v: l1 * abs(u) + 0.5 * rho * (u - v / rho) ** 2,
            bounds=(-10.0, 10.0),
            method="bounded",
            options={"xatol": 1e-10},
        )
        right = np.sign(v) * max(abs(v) - l1, 0.0) / rho
        printed = np.sign(v) * max(abs(v - l1), 0.0) / rho
        assert found.x == pytest.approx(right, abs=1e-6)
        assert v > l1 or abs(printed - right) > 1e-3
