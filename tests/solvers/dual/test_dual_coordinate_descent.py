"""Dual coordinate descent, against Clarabel and interior points, and its laws."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from proxmargin import (
    L2SVC,
    SVC,
    ElasticNetSVC,
    HuberizedSVC,
    LogisticRegression,
    NuSVC,
    SquaredHingeSVC,
)
from proxmargin.compiled.solvers.dual_coordinates import DualTerms, squares
from proxmargin.data.designs import SparseDesign, StandardizedDesign, as_design, moments
from proxmargin.losses import Hinge, HuberizedHinge, Logistic, MarginLoss, MarginSum, SquaredHinge
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import Penalty, Pinned, Ridge
from proxmargin.solvers.choice.names import SOLVERS, Choice, RuleTable, choose, solve
from proxmargin.solvers.choice.rules import rules_for
from proxmargin.solvers.dual import dual_coordinate_descent, dual_rows
from proxmargin.solvers.dual.dual_coordinate_descent import (
    CoordinateDescentState,
    DualCoordinateDescent,
    _Face,
)
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from proxmargin.solvers.ridge.newton import RidgeNewton
from tests.compiled.solvers.test_dual_coordinates import (
    hessian,
    objective,
    rows_of,
    run,
    some_problem,
)
from tests.oracles.models import binary_optimum

NAME = DualCoordinateDescent.name
TIGHT = Stop(tol=1e-9)
LOSSES: dict[str, MarginLoss] = {
    "hinge": Hinge(),
    "huberized_hinge": HuberizedHinge(0.5),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
}
KINDS = (
    "dense",
    "float32",
    "csr",
    "csc",
    "csr, float32",
    pytest.param("long indices", marks=pytest.mark.slow),  # kernels for types of their own
)


def samples(kind: str = "csr", n: int = 40, p: int = 12) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(5)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, p)) + 0.7 * y[:, None] * (np.arange(p) < 3) + 0.5
    X[rng.random(X.shape) < 0.6] = 0.0
    if kind in ("dense", "float32"):
        return X.astype("float32" if kind == "float32" else "float64"), y
    make = sparse.csc_array if kind == "csc" else sparse.csr_array
    matrix = make(X.astype("float32") if kind.endswith("float32") else X)
    if kind == "long indices":
        matrix.indices, matrix.indptr = (
            part.astype(np.int64) for part in (matrix.indices, matrix.indptr)
        )
    return matrix, y


def problem_of(
    X: Any,
    y: np.ndarray,
    phi: MarginLoss | None = None,
    l2: float = 0.1,
    intercept: Penalty | None = None,
    weights: np.ndarray | None = None,
) -> Problem:
    weights = np.ones(y.size) if weights is None else weights
    shares = (weights / weights.sum())[:, None]
    loss = MarginSum(phi or Hinge(), y[:, None], shares)
    return Problem(loss, Ridge(l2), as_design(X), intercept or Ridge(0.0))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [Ridge(0.0), Ridge(0.3), Pinned()], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_it_finds_clarabels_optimum(
    loss: str, intercept: Penalty, weighted: bool, kind: str
) -> None:
    X, y = samples(kind)
    weights = 1.0 + np.arange(y.size) % 4 if weighted else np.ones(y.size)
    if weighted:
        weights[5:9] = 0.0
    problem = problem_of(X, y, LOSSES[loss], 0.05, intercept, weights)
    solution = minimize(problem, DualCoordinateDescent(), stop=TIGHT)
    known = binary_optimum(
        X,
        y,
        loss=loss,
        delta=0.5,
        alpha=0.05,
        l1_ratio=0.0,
        weights=weights,
        fit_intercept=not intercept.is_pinned,
        intercept_ridge=0.0 if intercept.is_pinned else intercept.l2,
    )
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(known.value, rel=1e-7)
    assert not solution.gap.dual_point[weights == 0].any()


@pytest.mark.parametrize("model", [SVC(C=0.3), L2SVC(C=0.3)], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("standardize", [False, True])
def test_rows_of_every_kind_have_one_optimum(model: Any, kind: str, standardize: bool) -> None:
    X, y = samples(kind)
    settings = {**model.get_params(), "standardize": standardize, "tol": 1e-9}
    told = type(model)(**{**settings, "solver": NAME}).fit(X, y).certificate_
    known = type(model)(**{**settings, "solver": "interior-point"}).fit(X, y).certificate_
    assert told.solver == NAME
    assert told.converged
    assert told.dual <= known.primal
    assert known.dual <= told.primal


@pytest.mark.parametrize(
    "model",
    [
        ElasticNetSVC(alpha=0.1, l1_ratio=0.0),
        HuberizedSVC(alpha=0.1, l1_ratio=0.0),
        SquaredHingeSVC(alpha=0.1, l1_ratio=0.0),
        HuberizedSVC(alpha=0.1, l1_ratio=0.0, multi_class="ovr"),
    ],
    ids=repr,
)
def test_models_with_an_elastic_net_take_it_where_the_net_is_a_ridge(model: Any) -> None:
    X, y = samples()
    y = np.arange(y.size) % 3 if model.get_params().get("multi_class") == "ovr" else y
    told = type(model)(**{**model.get_params(), "solver": NAME}).fit(X, y)
    known = model.fit(X, y)
    certificates = told.certificate_ if isinstance(told.certificate_, list) else [told.certificate_]
    assert all(each.solver == NAME and each.converged for each in certificates)
    np.testing.assert_allclose(told.coef_, known.coef_, atol=0.02)


def test_it_refuses_what_it_cannot_take(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = samples()
    with pytest.raises(UnsuitableSolverError, match="a threshold, which a nu-SVM has"):
        NuSVC(solver=NAME).fit(X, y)
    monkeypatch.setattr(dual_rows, "LARGEST_COPY", 100)
    with pytest.raises(UnsuitableSolverError, match="not contiguous in these dense data"):
        SVC(solver=NAME).fit(np.asfortranarray(X.toarray()), y)
    with pytest.raises(UnsuitableSolverError, match="it needs"):
        ElasticNetSVC(solver=NAME, l1_ratio=0.5).fit(X, y)
    for name, value in (("stiffness", 0.0), ("stiffness", np.inf), ("forcing", 1.0)):
        with pytest.raises(ValueError, match=f"solver_options: {name} must"):
            DualCoordinateDescent(**{name: value})


@settings(max_examples=12)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.integers(1, 5),
    st.floats(-4, 4),
    st.sampled_from(list(LOSSES)),
    st.sampled_from([Ridge(0.0), Ridge(0.3), Pinned()]),
)
def test_no_certificate_on_its_way_is_below_the_true_gap(
    seed: int, n: int, p: int, exponent: float, loss: str, intercept: Penalty
) -> None:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.7)
    X[rng.random(n) < 0.2] = 0.0
    X[rng.random(n) < 0.2] = X[0]
    weights = np.maximum(rng.integers(0, 3, n), np.arange(n) < 2).astype(float)
    problem = problem_of(sparse.csr_array(X), y, LOSSES[loss], 10.0**exponent, intercept, weights)
    other = RidgeNewton() if loss == "logistic" else InteriorPoint()
    known = minimize(problem, other, stop=TIGHT).certificate
    gaps = []
    stop = Stop(tol=1e-10, max_iter=40)
    minimize(problem, DualCoordinateDescent(), stop=stop, callbacks=[lambda r: gaps.append(r.gap)])
    assert gaps
    room = 1e-12 * abs(known.primal)
    for gap in gaps:
        assert gap.dual <= known.primal + room
        assert gap.primal >= known.dual - room
        assert gap.gap >= gap.primal - known.primal - room


@pytest.mark.parametrize("weight", [1e-8, 1.0, 1e4])
@pytest.mark.parametrize("case", ["separable", "one sample a class", "repeated", "empty rows"])
def test_special_samples(case: str, weight: float) -> None:
    X, y = samples("dense", 20, 6)
    if case == "separable":
        X[:, 0] = 2.0 * y + 0.1 * X[:, 1]
    elif case == "one sample a class":
        X, y = X[:2], np.array([1.0, -1.0])
    elif case == "repeated":
        X[5:15], y[5:15] = X[4], y[4]
    else:
        X[3:9] = 0.0
    C = {"C": weight}
    told = SVC(solver=NAME, **C).fit(sparse.csr_array(X), y).certificate_
    known = SVC(solver="interior-point", **C, tol=1e-9).fit(X, y).certificate_
    assert told.converged
    assert told.primal == pytest.approx(known.primal, rel=2e-6)
    assert told.dual <= known.primal * (1 + 1e-12)


def test_a_standardised_sparse_design_is_not_centred_in_memory() -> None:
    X, y = samples()
    design = SparseDesign(X)
    shares = np.full(y.size, 1.0 / y.size)
    centred = StandardizedDesign(design, *moments(design, shares))
    # without an intercept centring changes the optimum
    plain = problem_of(X, y, intercept=Pinned())
    moved = Problem(plain.loss, plain.penalty, centred, plain.intercept)
    solution = minimize(moved, DualCoordinateDescent(), stop=TIGHT)
    dense = (X.toarray() - centred.centre) / centred.scale
    known = binary_optimum(
        dense, y, loss="hinge", alpha=0.1, l1_ratio=0.0, fit_intercept=False
    ).value
    assert solution.certificate.primal == pytest.approx(known, rel=1e-7)


@pytest.mark.parametrize("told", ["point", "dual"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_start_saves_sweeps(told: str, loss: str) -> None:
    X, y = samples()
    problem = problem_of(X, y, LOSSES[loss])
    cold = minimize(problem, DualCoordinateDescent(), stop=TIGHT)
    near = problem_of(X, y, LOSSES[loss], 0.0999)
    dual = cold.gap.dual_point if told == "dual" else None
    start = Point(cold.point.coef, cold.point.intercept, dual)
    warm = minimize(near, DualCoordinateDescent(), start=start, stop=TIGHT)
    assert warm.certificate.converged
    assert warm.certificate.n_iter < cold.certificate.n_iter


def test_it_starts_where_another_solver_has_ended_and_the_other_way() -> None:
    X, y = samples()
    problem = problem_of(X, y)
    far = minimize(problem, DualCoordinateDescent(), stop=Stop(tol=1e-3))
    solution = solve(
        problem, Choice(DualCoordinateDescent(), NAME, "given"), stop=TIGHT, start=far.point
    )
    assert solution.certificate.converged


def test_equal_runs_end_at_the_same_bits_and_leave_the_first_state_as_it_was() -> None:
    X, y = samples()
    problem, solver = problem_of(X, y), DualCoordinateDescent()
    first = solver.init(problem, problem.origin(), Stop())
    kept = first.a.copy(), first.v.copy(), first.active.copy()
    one, two = solver.step(problem, first), solver.step(problem, first)
    np.testing.assert_array_equal(one.a, two.a)
    for before, after in zip(kept, (first.a, first.v, first.active), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_its_scores_are_bit_by_bit_those_of_its_point(loss: str, kind: str) -> None:
    X, y = samples(kind)
    problem, solver = problem_of(X, y, LOSSES[loss]), DualCoordinateDescent()
    state, told = solver.init(problem, problem.origin(), Stop(tol=1e-9)), 0
    for _ in range(30):
        state = solver.step(problem, state)
        scores, point = solver.scores(problem, state), solver.point(problem, state)
        if scores is not None:
            exact = problem.design.scores(point.coef) + point.intercept
            np.testing.assert_array_equal(scores, exact)
            told += 1
    assert told


def test_an_offset_of_the_scores_moves_the_goals() -> None:
    X, y = samples()
    offset = np.linspace(-1.0, 1.0, y.size)
    settings = {"alpha": 0.1, "l1_ratio": 0.0, "tol": 1e-9}
    told, known = (
        ElasticNetSVC(solver=solver, **settings).fit(X, y, offset=offset).certificate_
        for solver in (NAME, "multiplier-newton")
    )
    assert told.converged
    assert told.primal == pytest.approx(known.primal, rel=1e-8)


@pytest.mark.parametrize("limit", [1, 3, 30])
def test_no_more_sweeps_than_allowed(limit: int) -> None:
    X, y = samples("csr")
    with pytest.warns(ConvergenceWarning):
        model = SVC(C=1e4, solver=NAME, max_iter=limit, tol=1e-12).fit(X, y)
    assert model.n_iter_ == limit


def sparse_noise(n: int, p: int) -> tuple[Any, np.ndarray]:
    """Sparse samples with labels that do not depend on them."""
    rng = np.random.default_rng(7)
    X = sparse.random(n, p, 0.03, format="csr", rng=rng, data_rvs=rng.standard_normal)
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)


def sparse_text(n: int, p: int) -> tuple[Any, np.ndarray]:
    """Sparse samples of unit length, more features than samples."""
    X, y = sparse_noise(n, p)
    return sparse.csr_array(normalize(X)), y


def test_it_gives_up_after_many_sweeps_and_another_solver_goes_on() -> None:
    X, y = sparse_noise(150, 50)
    (problem,) = SVC(C=1e4)._assemble(X, y, None).problems
    alone = minimize(problem, DualCoordinateDescent(max_sweeps=40), stop=Stop(tol=1e-6))
    assert alone.status is Status.STALLED
    assert 40 <= alone.certificate.n_iter < 200
    assert np.isfinite(alone.certificate.gap)
    chosen = choose(problem)
    assert chosen.name == NAME
    brief = replace(chosen, solver=DualCoordinateDescent(max_sweeps=40))
    both = solve(problem, brief, stop=Stop(tol=1e-6))
    assert both.certificate.converged
    assert "went on" in both.certificate.because


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_an_ill_conditioned_logistic_model_goes_on_with_newtons_method(fit_intercept: bool) -> None:
    X, y = samples()
    model = LogisticRegression(C=1e3, fit_intercept=fit_intercept, tol=1e-9)
    (problem,) = model._assemble(X, y, None).problems
    alone = minimize(problem, DualCoordinateDescent(max_sweeps=500), stop=TIGHT)
    assert alone.status is Status.STALLED
    assert 100 <= alone.certificate.n_iter < 400  # a fifth; twice, if the multiplier cycles
    known = minimize(problem, RidgeNewton(), stop=TIGHT).certificate
    assert known.converged
    assert alone.certificate.dual <= known.primal * (1 + 1e-12)
    assert alone.certificate.gap >= alone.certificate.primal - known.primal
    swept = replace(choose(problem), solver=DualCoordinateDescent(max_sweeps=500), name=NAME)
    others = RuleTable(rules_for(problem), SOLVERS, ((NAME, {}),))
    both = solve(problem, replace(swept, others=others), stop=TIGHT)
    assert both.certificate.converged
    assert "'ridge-newton' went on" in both.certificate.because
    assert both.certificate.primal == pytest.approx(known.primal, rel=1e-8)


@pytest.mark.parametrize(("C", "name"), [(0.01, NAME), (100.0, NAME), (1000.0, "ridge-newton")])
def test_logistic_models_of_text_take_it_up_to_a_reach(C: float, name: str) -> None:
    X, y = sparse_text(300, 4000)
    model = LogisticRegression(C=C).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.solver == name


def noise(n: int, p: int, entries: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Sparse rows, with labels by chance."""
    rng = np.random.default_rng(7)
    ends = np.arange(n + 1) * entries
    values, places = rng.standard_normal(entries * n), rng.integers(0, p, entries * n)
    return sparse.csr_array((values, places, ends), (n, p)), np.where(rng.random(n) < 0.5, 1, -1)


def test_primal_dual_steps_go_on_where_matrices_would_be_large() -> None:
    X, y = noise(7000, 6100, 3)
    (problem,) = SVC(C=1e3)._assemble(X, y, None).problems
    following = choose(problem).following(problem)
    assert following is not None
    assert following.name == "fbpd"


def test_sweeps_that_settle_no_samples_end_early() -> None:
    X, y = noise(15_000, 5500, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = SVC(C=1e4, solver=NAME).fit(X, y).certificate_
    assert not certificate.converged
    assert certificate.n_iter < 300


@pytest.mark.slow
@pytest.mark.parametrize("C", [1e3, 1e5])
def test_labels_by_chance_are_certified_at_weak_ridges(C: float) -> None:
    X, y = noise(15_000, 5500, 10)
    model = SVC(C=C).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.solver == "fbpd"
    weights, margins = np.zeros(y.size), y * model.decision_function(X)
    weights[model.support_] = model.dual_coef_[0]
    assert ((y * weights >= 0) & (y * weights <= C * (1 + 1e-12))).all()
    assert abs(weights.sum()) <= 1e-9 * C
    primal = 0.5 * float(np.sum(model.coef_**2)) + C * np.maximum(0.0, 1.0 - margins).sum()
    dual = float(y @ weights) - 0.5 * float(np.sum((X.T @ weights) ** 2))
    assert 0.0 <= primal - dual <= 2e-6 * primal


@pytest.mark.parametrize("model", [SVC(C=0.3), L2SVC(C=0.3), LogisticRegression(C=0.3)], ids=repr)
def test_dense_columns_are_copied_by_rows(model: Any) -> None:
    X, y = samples("dense")
    one, two = (
        type(model)(**{**model.get_params(), "solver": NAME}).fit(each, y)
        for each in (X, np.asfortranarray(X))
    )
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_logistic_loss_has_the_optimum_of_newtons_method(
    kind: str, C: float, fit_intercept: bool
) -> None:
    X, y = samples(kind)
    settings = {"C": C, "fit_intercept": fit_intercept, "tol": 1e-9}
    told, known = (
        LogisticRegression(**settings, solver=solver).fit(X, y, sample_weight=1.0 + (y > 0))
        for solver in (NAME, "ridge-newton")
    )
    assert told.certificate_.converged
    assert told.certificate_.primal == pytest.approx(known.certificate_.primal, rel=1e-8)
    assert told.certificate_.dual <= known.certificate_.primal * (1 + 1e-12)


@pytest.mark.parametrize("model", [SVC(C=0.01), SVC(C=10.0), LogisticRegression(C=1.0)], ids=repr)
def test_a_free_intercept_of_few_positive_samples(model: Any) -> None:
    X, y = sparse_noise(400, 300)
    y = np.where(np.arange(400) % 20 == 0, 1.0, -1.0)
    told = type(model)(**{**model.get_params(), "solver": NAME, "tol": 1e-8}).fit(X, y)
    assert told.certificate_.converged
    other = "ridge-newton" if isinstance(model, LogisticRegression) else "interior-point"
    known = type(model)(**{**model.get_params(), "solver": other, "tol": 1e-9}).fit(X, y)
    assert told.certificate_.primal == pytest.approx(known.certificate_.primal, rel=1e-7)


# -- conjugate gradients on a face ----------------------------------------------------------------


def swept(
    problem: dict[str, Any], enough: float, limit: int, kind: str = "sparse"
) -> CoordinateDescentState:
    """The state after sweeps of the kernel."""
    found = run(problem, enough, limit, kind)
    return CoordinateDescentState(
        a=found.dual,
        v=found.coef,
        active=found.active,
        n_active=found.n_active,
        residual=found.residual,
        moment=found.moment,
        stiffness=problem["stiffness"],
        multiplier=found.multiplier,
    )


def on_face(
    problem: dict[str, Any], start: CoordinateDescentState, kind: str, balanced: bool = False
) -> CoordinateDescentState:
    rows, norms = rows_of(problem, kind), np.empty(start.a.size)
    squares(rows, norms)
    terms = DualTerms(*(problem[name] for name in ("signs", "caps", "bends", "goals")), False)
    free = np.flatnonzero((start.a > 0) & (start.a < problem["caps"]))
    return _Face(rows, terms, start.stiffness, free, start.v.size).moved(
        start, norms, balanced, 250
    )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_on_a_face_whose_minimum_is_in_the_box_it_is_found(kind: str, rng, monkeypatch) -> None:
    monkeypatch.setattr(dual_coordinate_descent, "CG_TOLERANCE", 1e-14)
    problem = some_problem(rng) | {"bends": np.full(24, 0.3)}
    start = swept(problem, 1e-4, 500, kind)
    found = on_face(problem, start, kind)
    free = np.flatnonzero((start.a > 0) & (start.a < problem["caps"]))
    Q, slope = hessian(problem), problem["base"] * problem["signs"] - problem["goals"]
    expected = start.a.copy()
    fixed = np.delete(np.arange(24), free)
    right = -slope[free] - Q[np.ix_(free, fixed)] @ start.a[fixed]
    expected[free] = np.linalg.solve(Q[np.ix_(free, free)], right)
    assert not found.blocked
    np.testing.assert_allclose(found.a, expected, rtol=1e-9)
    signed = problem["signs"] * found.a
    np.testing.assert_allclose(found.v, problem["metric"] * (signed @ problem["X"]), atol=1e-12)
    assert found.residual == pytest.approx(signed.sum(), abs=1e-12)
    assert found.moment == pytest.approx(problem["centre"] @ found.v, abs=1e-12)
    assert found.multiplier == problem["base"]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_on_a_face_the_multiplier_of_a_balance_is_found_too(kind: str, rng, monkeypatch) -> None:
    monkeypatch.setattr(dual_coordinate_descent, "CG_TOLERANCE", 1e-14)
    problem = some_problem(rng) | {"bends": np.full(24, 0.3)}
    start = swept(problem, 1e-4, 500, kind)
    inside = (start.a > 0) & (start.a < problem["caps"])
    free, fixed = np.flatnonzero(inside), np.flatnonzero(~inside)
    y, Q = problem["signs"], hessian(problem)
    slope = problem["base"] * y - problem["goals"]
    system = np.block([[Q[np.ix_(free, free)], y[free, None]], [y[None, free], np.zeros((1, 1))]])
    right = -slope[free] - Q[np.ix_(free, fixed)] @ start.a[fixed]
    *inner, multiplier = np.linalg.solve(system, np.append(right, -y[fixed] @ start.a[fixed]))
    assert abs(start.residual) > 1e-3
    found = on_face(problem, start, kind, balanced=True)
    assert not found.blocked
    if np.all((np.array(inner) > 0) & (np.array(inner) < problem["caps"][free])):
        np.testing.assert_allclose(found.a[free], inner, rtol=1e-8)
        assert found.multiplier == pytest.approx(problem["base"] + multiplier, abs=1e-8)
        assert found.residual == pytest.approx(0.0, abs=1e-12)
    assert abs(found.residual) < abs(start.residual)


@pytest.mark.parametrize("sweeps", [1, 2, 5])
def test_elsewhere_it_stays_in_the_box_and_decreases_the_objective_or_does_nothing(
    sweeps: int, rng
) -> None:
    for _ in range(5):
        problem = some_problem(rng, n=60)
        start = swept(problem, 0.0, sweeps)
        found = on_face(problem, start, "sparse")
        assert np.all((found.a >= 0) & (found.a <= problem["caps"]))
        if not found.blocked:
            assert objective(problem, found.a) < objective(problem, start.a)
        else:
            np.testing.assert_array_equal(found.a, start.a)
