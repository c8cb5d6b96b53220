"""Two ways to say the same model give the same fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from proxmargin import DWD, ElasticNetSVC, HuberizedSVC, SquaredHingeSVC
from proxmargin.data.designs import DenseDesign
from proxmargin.losses import HuberizedHinge, MarginSum, wrong_classes
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import smooth_critical_strength
from proxmargin.penalties import ElasticNet, Pinned, Ridge, SumToZero
from proxmargin.solvers.choice.names import SOLVERS, suitable
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from tests.cases import ESTIMATORS, KERNEL_MACHINES, PENALISED, SMOOTH_LOSSES
from tests.oracles.models import binary_optimum

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
# where classes are too close for it, the nu-SVM says that there is no margin
pytestmark = pytest.mark.filterwarnings("ignore:.*leaves no margin:Warning")
TIGHT = 1e-11
# on the dual side these lose the last digits, or cycle, as their papers have them
AS_PRINTED = {"apg", "fapg", "fapg-guaranteed", "fapg-ws"}


def cancer(rows: int = 150, features: int = 8) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    chosen = np.sort(np.random.default_rng(5).permutation(y.size)[:rows])
    X = X[chosen, :features]
    return (X - X.mean(axis=0)) / X.std(axis=0), y[chosen]


@pytest.mark.parametrize("phi", SMOOTH_LOSSES.values(), ids=SMOOTH_LOSSES.keys())
@pytest.mark.parametrize("intercept", ["free", "ridge", "none"])
def test_two_classes_together_are_the_binary_model_with_doubled_penalties(phi, intercept) -> None:
    X, codes = cancer()
    n = codes.size
    l1, l2, r = 0.02, 0.01, 0.1 * (intercept == "ridge")
    weights = (1.0 + np.arange(n) % 3) / np.sum(1.0 + np.arange(n) % 3)
    of_pair = Pinned() if intercept == "none" else SumToZero(ElasticNet(0.0, r))
    of_one = Pinned() if intercept == "none" else Ridge(2 * r)
    pair = Problem(
        wrong_classes(phi, codes, weights, 2, n),
        SumToZero(ElasticNet(l1, l2)),
        DenseDesign(X),
        of_pair,
    )
    signs = np.where(codes == 1, 1.0, -1.0)[:, None]
    one = Problem(
        MarginSum(phi, signs, weights[:, None], n),
        ElasticNet(2 * l1, 2 * l2),
        DenseDesign(X),
        of_one,
    )
    stop = Stop(tol=TIGHT)
    joint, binary = (minimize(problem, SOLVERS["fapg"](), stop=stop) for problem in (pair, one))
    assert joint.certificate.primal == pytest.approx(binary.certificate.primal, rel=1e-10)
    W, w = joint.point.coef, binary.point.coef[:, 0]
    np.testing.assert_allclose(W[:, 1], w, atol=1e-4)
    np.testing.assert_allclose(W[:, 0], -W[:, 1], atol=1e-14)
    np.testing.assert_allclose(joint.point.intercept, [-1, 1] * binary.point.intercept, atol=1e-4)
    assert smooth_critical_strength(pair) == pytest.approx(
        smooth_critical_strength(one) / 2, rel=1e-9
    )


def test_the_huberized_optimum_approaches_that_of_the_hinge_at_half_of_delta() -> None:
    X, codes = cancer(100)
    y = np.where(codes == 1, 1.0, -1.0)
    model = {"alpha": 0.05, "l1_ratio": 0.5}
    hinge = binary_optimum(X, y, loss="hinge", **model).value
    for delta in (0.5, 0.1, 0.01, 0.001):
        fit = HuberizedSVC(delta=delta, tol=1e-8, **model).fit(X, codes)
        # hinge - delta/2 <= huberized hinge <= hinge, point by point
        assert hinge - delta / 2 - 1e-7 <= fit.certificate_.primal <= hinge + 1e-7


def test_a_huberized_hinge_wide_enough_is_a_scaled_squared_hinge() -> None:
    X, codes = cancer()
    delta = 200.0  # wider than any margin: only the quadratic piece is met
    wide = HuberizedSVC(alpha=1e-4, l1_ratio=0.5, delta=delta, tol=TIGHT).fit(X, codes)
    square = SquaredHingeSVC(alpha=2 * delta * 1e-4, l1_ratio=0.5, tol=TIGHT).fit(X, codes)
    assert 2 * delta * wide.certificate_.primal == pytest.approx(
        square.certificate_.primal, rel=1e-9
    )
    np.testing.assert_allclose(wide.coef_, square.coef_, atol=1e-4)


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.sampled(2)
@every_estimator
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("standardize", [False, True])
def test_weight_two_is_a_repeated_row_and_weight_zero_a_removed_one(
    make: Any, classes: int, standardize: bool
) -> None:
    X, y = cancer(80, 5) if classes == 2 else three_classes()
    times = np.arange(y.size) % 3
    options = {"tol": TIGHT, "standardize": standardize}
    weighted = make(**options).fit(X, y, sample_weight=times.astype(float))
    repeated = make(**options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-4)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=2e-4)


@pytest.mark.sampled(3)
@every_estimator
@pytest.mark.parametrize("classes", [2, 3])
def test_equal_weights_of_any_size_are_no_weights(make: Any, classes: int) -> None:
    X, y = cancer(80, 5) if classes == 2 else three_classes()
    plain = make(tol=TIGHT).fit(X, y)
    for size in (1e-8, 7.0, 1e8):
        # a sum over the samples is multiplied; the C in front of it can undo that
        undone = {"C": 1.0 / size} if "C" in make().get_params() else {}
        factor = size if make is DWD else 1.0
        weighted = make(tol=TIGHT, **undone).fit(X, y, sample_weight=np.full(y.size, size))
        primal = factor * plain.certificate_.primal
        assert weighted.certificate_.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)


@every_estimator
@pytest.mark.parametrize("classes", [2, 3])
def test_class_weights_are_sample_weights(make: Any, classes: int) -> None:
    X, y = cancer(80, 5) if classes == 2 else three_classes()
    y = y[: 130 if classes == 3 else None]
    X = X[: y.size]
    by_class = make(class_weight="balanced", tol=TIGHT).fit(X, y)
    counts = np.bincount(y)
    by_sample = make(tol=TIGHT).fit(X, y, sample_weight=y.size / (classes * counts[y]))
    np.testing.assert_allclose(by_class.coef_, by_sample.coef_, atol=1e-5)


@pytest.mark.sampled(2)
@every_estimator
@pytest.mark.parametrize("loader", [load_breast_cancer, load_wine])
def test_standardize_is_a_standard_scaler_in_front(make: Any, loader: Any) -> None:
    X, y = loader(return_X_y=True)
    X, y = X[:, :10], y
    inside = make(standardize=True, tol=TIGHT).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), make(tol=TIGHT)).fit(X, y)
    outside = pipeline[-1]
    primal = outside.certificate_.primal
    assert inside.certificate_.primal == pytest.approx(primal, rel=1e-9)
    scale = pipeline[0].scale_
    np.testing.assert_allclose(inside.coef_ * scale, outside.coef_, atol=1e-3)
    scores = [of.decision_function(X) for of in (inside, pipeline)]
    if inside.multi_class == "joint" and scores[0].ndim == 2:
        # intercepts sum to zero in either's units: a number for all classes says nothing
        scores = [each - each.mean(axis=1, keepdims=True) for each in scores]
    np.testing.assert_allclose(*scores, atol=5e-3)


@every_estimator
def test_swapping_the_labels_swaps_the_sign(make: Any) -> None:
    X, y = cancer(80, 5)
    one, other = make(tol=TIGHT).fit(X, y), make(tol=TIGHT).fit(X, 1 - y)
    np.testing.assert_allclose(one.coef_, -other.coef_, atol=1e-4)
    np.testing.assert_allclose(one.intercept_, -other.intercept_, atol=1e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", PENALISED.values(), ids=PENALISED.keys())
@pytest.mark.parametrize("classes", [2, 3])
def test_every_solver_gives_the_same_objective(make: Any, classes: int) -> None:
    X, y = cancer() if classes == 2 else three_classes()
    joint = classes == 3 and make().get_params()["multi_class"] == "joint"
    if make is ElasticNetSVC:  # whose other solvers leave the last digits
        takers = ["multiplier-newton", "isvm2", "auto"]
    elif joint:
        takers = ["m-pgh", "m-pgh-2", "fapg", "fapg-ws", "auto"]
    else:
        takers = ["b-pgh", "b-pgh-2", "gcd", "newton", "fapg", "fapg-ws", "auto"]
    values = [make(solver=name, tol=1e-10).fit(X, y).certificate_.primal for name in takers]
    np.testing.assert_allclose(values, values[0], rtol=2e-10)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", KERNEL_MACHINES.values(), ids=KERNEL_MACHINES.keys())
def test_every_suitable_solver_gives_the_same_objective(make: Any) -> None:
    X, y = cancer()
    problem = make()._assemble(X, y, None).problems[0]
    takers = [name for name in suitable(problem) if name not in AS_PRINTED]
    assert "fapg-star" in takers
    values = [
        make(solver=name, tol=1e-8).fit(X, y).certificate_.primal for name in [*takers, "auto"]
    ]
    np.testing.assert_allclose(values, values[-1], rtol=2e-8, atol=1e-10, err_msg=str(takers))


def test_restricting_a_problem_to_its_support_keeps_the_optimum() -> None:
    X, codes = cancer(150, 8)
    signs = np.where(codes == 1, 1.0, -1.0)[:, None]
    loss = MarginSum(HuberizedHinge(), signs, np.full((150, 1), 1 / 150), 150.0)
    problem = Problem(loss, ElasticNet(0.1, 0.01), DenseDesign(X), Ridge())
    whole = minimize(problem, SOLVERS["fapg"](), stop=Stop(tol=TIGHT))
    support = np.flatnonzero(whole.point.coef.any(axis=1))
    assert 0 < support.size < 8
    part = minimize(problem.on_columns(support), SOLVERS["fapg"](), stop=Stop(tol=TIGHT))
    assert part.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-10)
