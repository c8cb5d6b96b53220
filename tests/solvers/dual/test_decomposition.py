"""Decompositions of exact kernels: the models of others, and of the factor of the same kernel."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info, threadpool_limits

from proxmargin import L2SVC, SVC, LogisticRegression, NuSVC
from proxmargin.data.kernels import Precomputed, Rbf
from proxmargin.data.kernels.checks import IndefiniteKernelError
from proxmargin.data.kernels.matrices import kernel_matrix
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.functions.losses.tail_mean import TailMean
from proxmargin.losses import Hinge, MarginSum, SquaredHinge
from proxmargin.optimality.certificates.representer import certify_represented, represented
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import Pinned, Ridge
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.dual.decomposition import BlockDecomposition, Blocks, BoxedDual
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError

TIGHT = 1e-9


def data(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    noise = 0.3 * rng.standard_normal(n)
    return X, np.where(np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + noise > 0, 1.0, -1.0)


def problem_of(kind: str, n: int = 400, matrix: Any = None, weights: Any = None) -> Problem:
    X, y = data(n)
    shares = np.ones(n) if weights is None else weights
    shares = shares / shares.sum()
    loss = {
        "hinge": lambda: MarginSum(Hinge(), y[:, None], shares[:, None], n),
        "squared hinge": lambda: MarginSum(SquaredHinge(), y[:, None], shares[:, None], n),
        "tail mean": lambda: TailMean(y, shares, 0.31, n),
    }[kind]()
    matrix = kernel_matrix(Rbf(0.2), X) if matrix is None else matrix
    l2 = 1.0 if kind == "tail mean" else 1.0 / n
    return Problem(loss, Ridge(l2), KernelDesign(matrix), Ridge(0.0))


def solved(problem: Problem, tol: float = TIGHT, start: Any = None, **options: Any) -> Any:
    solver = BlockDecomposition(**options)
    stop = Stop(tol=tol)
    return minimize(problem, solver, stop=stop, start=start, certify=certify_represented)


every_kind = pytest.mark.parametrize("kind", ["hinge", "squared hinge", "tail mean"])
MODELS = {
    "SVC": (SVC, {"C": 3.0}, svm.SVC),
    "NuSVC": (NuSVC, {"nu": 0.31}, svm.NuSVC),
    "L2SVC": (L2SVC, {"C": 0.7}, None),
}
every_model = pytest.mark.parametrize("name", MODELS)
KERNELS: list[dict[str, Any]] = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "poly", "degree": 3, "gamma": 0.2, "coef0": 1.0},
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "poly"])


# -- other solvers --------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_decisions_are_those_of_scikit_learn(name: str, kernel: dict[str, Any]) -> None:
    make, parameter, other = MODELS[name]
    X, y = data()
    theirs = other(**parameter, **kernel, tol=1e-9).fit(X, y).decision_function(X)
    model = make(**parameter, **kernel, solver="decomposition", tol=TIGHT).fit(X, y)
    assert model.certificate_.converged
    found = model.decision_function(X)
    np.testing.assert_allclose(found, theirs, atol=1e-4 * np.abs(theirs).max())


@every_kernel
@every_model
@pytest.mark.parametrize("weighted", [False, True])
def test_objectives_are_those_of_a_full_factor(name: str, kernel: dict, weighted: bool) -> None:
    make, parameter, _ = MODELS[name]
    X, y = data(250)
    weights = 0.5 + np.arange(250) % 3 if weighted else None
    parameter = {**parameter, **kernel, "tol": 1e-10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1e-10 is not always met
        exact = make(**parameter, solver="decomposition").fit(X, y, weights)
        factored = make(**parameter, rank=250).fit(X, y, weights)
    assert exact.certificate_.solver == "decomposition"
    assert factored.certificate_.solver != "decomposition"
    assert exact.certificate_.primal == pytest.approx(factored.certificate_.primal, rel=1e-8)


@every_model
def test_weights_are_repeated_rows(name: str) -> None:
    make, parameter, _ = MODELS[name]
    X, y = data(150)
    counts = np.arange(150) % 3
    settings = {**parameter, "kernel": "rbf", "gamma": 0.2, "solver": "decomposition", "tol": TIGHT}
    weighted = make(**settings).fit(X, y, sample_weight=counts)
    repeated = make(**settings).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-8)
    ours, other = weighted.decision_function(X), repeated.decision_function(X)
    np.testing.assert_allclose(ours, other, atol=1e-4 * np.abs(other).max())


@every_model
def test_a_precomputed_kernel_gives_the_same_model(name: str) -> None:
    make, parameter, _ = MODELS[name]
    X, y = data(200)
    settings = {**parameter, "solver": "decomposition", "tol": TIGHT}
    named = make(**settings, kernel="rbf", gamma=0.2).fit(X, y)
    K = rbf_kernel(X, gamma=0.2)
    given = make(**settings, kernel="precomputed").fit(K, y)
    other = named.decision_function(X)
    atol = 1e-4 * np.abs(other).max()
    np.testing.assert_allclose(given.decision_function(K), other, atol=atol)


def test_every_class_of_three_is_certified() -> None:
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel="rbf", gamma=0.5, solver="decomposition", tol=TIGHT).fit(X, y)
    assert [c.converged for c in model.certificate_] == [True] * 3
    for k, scores in enumerate(model.decision_function(X).T):
        theirs = svm.SVC(gamma=0.5, tol=1e-9).fit(X, y == k)
        np.testing.assert_allclose(scores, theirs.decision_function(X), atol=1e-4)


# -- what must not matter -------------------------------------------------------------------------


@pytest.mark.sampled(2)
@every_kind
@pytest.mark.parametrize("block", [2, 20, 80])
def test_the_size_of_blocks_does_not_change_the_optimum(kind: str, block: int) -> None:
    problem = problem_of(kind, 80)
    whole = solved(problem, block=80).gap
    parts = solved(problem, tol=1e-7, block=block).gap
    assert parts.primal - whole.primal <= 1e-7 * abs(whole.primal) + parts.gap
    assert parts.relative_gap <= 1e-7


@pytest.mark.parametrize("unit", [1e-30, 1e30, 1e60])
def test_kernels_beyond_single_precision_give_the_same_decisions(unit: float) -> None:
    X, y = data(100)
    K = rbf_kernel(X, gamma=0.2)
    plain = SVC(3.0, kernel="precomputed", tol=TIGHT).fit(K, y)
    scaled = SVC(3.0 / unit, kernel="precomputed", tol=TIGHT).fit(unit * K, y)
    assert scaled.certificate_.solver == "decomposition"
    assert scaled.certificate_.converged
    expected = plain.decision_function(K)
    np.testing.assert_allclose(scaled.decision_function(unit * K), expected, atol=1e-4)


@every_kind
def test_a_tiny_cache_gives_the_same_answer(kind: str) -> None:
    X, _ = data()
    large = solved(problem_of(kind), block=50)
    matrix = kernel_matrix(Rbf(0.2), X, cache_bytes=8 * 400 * 7)
    small = solved(problem_of(kind, matrix=matrix), block=50)
    assert matrix.nbytes <= 8 * 400 * 7
    # to a gap at which rounding does not decide how many
    some = [solved(problem_of(kind, matrix=m), 1e-8, block=50).state.pairs for m in (matrix, None)]
    assert some[0] == pytest.approx(some[1], rel=0.1)
    assert small.gap.primal == pytest.approx(large.gap.primal, rel=2e-9)


@every_kind
def test_samples_that_have_nothing_in_common_are_all_solved(kind: str) -> None:
    matrix = kernel_matrix(Precomputed(), np.eye(200))
    solution = solved(problem_of(kind, 200, matrix), block=60)
    assert solution.status is Status.CONVERGED


@every_kind
def test_repeated_samples_are_no_trouble(kind: str) -> None:
    X, _ = data(100)
    matrix = kernel_matrix(Rbf(0.2), np.vstack([X, X]))
    # equal samples of both classes leave nu-SVM no margin: its gap is the rounding of zero
    tol = 1e-6 if kind == "tail mean" else TIGHT
    assert solved(problem_of(kind, 200, matrix), tol, block=60).status is Status.CONVERGED


@pytest.mark.sampled(2)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e2, 1e4])
def test_every_strength_meets_its_tolerance(C: float) -> None:
    X, y = data(600)
    model = SVC(C, kernel="rbf", gamma=0.1).fit(X, y)
    assert model.certificate_.solver == "decomposition"
    assert model.certificate_.relative_gap <= 1e-6


# -- the state ------------------------------------------------------------------------------------


@every_kind
def test_scores_stay_those_of_the_weights(kind: str) -> None:
    problem = problem_of(kind)
    state = solved(problem, block=40).state
    plain = problem.design.scores(state.weights[:, None])[:, 0]
    np.testing.assert_allclose(state.product, plain, atol=1e-11 * np.abs(plain).max())


@every_kind
def test_every_step_keeps_the_constraints_and_lowers_the_objective(kind: str) -> None:
    problem = problem_of(kind)
    solver = BlockDecomposition(block=40)
    state = solver.init(problem, problem.origin(), Stop())
    for _ in range(10):
        kept = state.weights.copy()
        after = solver.step(problem, state)
        np.testing.assert_array_equal(state.weights, kept)
        assert after.objective_change >= -1e-14
        dual = solver.dual(problem, after)
        assert np.isfinite(problem.loss.conjugate(dual))
        assert float(dual.sum()) == pytest.approx(0.0, abs=1e-13)
        state = after


@every_kind
def test_a_known_product_certifies_what_a_fresh_one_does(kind: str) -> None:
    problem = problem_of(kind)
    solver = BlockDecomposition(block=100)
    state = solver.init(problem, problem.origin(), Stop())
    for _ in range(5):
        state = solver.step(problem, state)
    dual = solver.dual(problem, state)
    known = certify_represented(
        problem, solver.point(problem, state), scores=solver.scores(problem, state), dual=dual
    )
    fresh = represented(problem, problem.design.kernel_matrix, dual).gap
    assert known.gap == pytest.approx(fresh.gap, rel=1e-9)
    assert known.primal == pytest.approx(fresh.primal, rel=1e-12)
    np.testing.assert_allclose(known.scores, fresh.scores, rtol=1e-9, atol=1e-12)


@every_kind
@pytest.mark.parametrize("steps", [6, 60])
def test_its_own_gap_is_that_of_the_certificate(kind: str, steps: int) -> None:
    problem = problem_of(kind, 150)
    solver = BlockDecomposition(block=40)
    state = solver.init(problem, problem.origin(), Stop())
    for _ in range(steps):
        state = solver.step(problem, state)
    point, dual = solver.point(problem, state), solver.dual(problem, state)
    scores = solver.scores(problem, state)
    gap = certify_represented(problem, point, scores=scores, dual=dual)
    rounding = gap.rounding / gap.scale
    assert state.relative_gap == pytest.approx(gap.relative_gap, rel=1e-6, abs=2.0 * rounding)


@every_kind
def test_small_problems_take_one_certificate(kind: str) -> None:
    certified: list[float] = []

    def counting(problem: Problem, point: Point, **known: Any) -> Any:
        gap = certify_represented(problem, point, **known)
        certified.append(gap.relative_gap)
        return gap

    solution = minimize(problem_of(kind, 200), BlockDecomposition(), certify=counting)
    assert solution.status is Status.CONVERGED
    assert len(certified) == 1
    assert certified[0] <= 1e-9


@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_free_weights_of_few_samples_are_exact(C: float, repeated: bool) -> None:
    X, y = data(120)
    X, y = (np.vstack([X, X[:40]]), np.append(y, y[:40])) if repeated else (X, y)
    model = SVC(C=C, kernel="rbf", gamma=0.2, tol=1e-3).fit(X, y)
    beta = model.dual_coef_[0]
    free = (np.abs(beta) < C * (1 - 1e-9)) & (np.abs(beta) > 1e-9)
    assert free.sum() > 20
    margins = (y * model.decision_function(X))[model.support_]
    np.testing.assert_allclose(margins[free], 1.0, rtol=0, atol=1e-8)
    assert abs(beta.sum()) <= 1e-11 * np.abs(beta).sum()


@every_kind
def test_a_solution_is_a_start_that_leaves_nothing_to_do(kind: str) -> None:
    problem = problem_of(kind)
    first = solved(problem, tol=1e-8)
    start = Point(first.state.weights[:, None], np.zeros(1))
    again = solved(problem, tol=1e-7, start=start)
    assert again.state.n_iter == 0


def test_a_state_can_be_gone_on_from() -> None:
    problem = problem_of("hinge")
    whole = solved(problem_of("hinge"), block=40)
    stop = Stop(tol=TIGHT, max_iter=3)
    part = minimize(problem, BlockDecomposition(40), stop=stop, certify=certify_represented)
    assert part.status is Status.ITERATION_LIMIT
    rest = solved(problem, block=40, start=part.state)
    np.testing.assert_array_equal(rest.state.weights, whole.state.weights)


# -- what it takes --------------------------------------------------------------------------------


def test_problems_that_it_cannot_take_are_refused_with_a_sentence() -> None:
    problem = problem_of("hinge")
    solver = BlockDecomposition()
    assert solver.objection(problem) is None
    assert "free intercept" in str(solver.objection(replace(problem, intercept=Pinned())))
    assert "free intercept" in str(solver.objection(replace(problem, intercept=Ridge(1.0))))
    X, y = data(60)
    with pytest.raises(UnsuitableSolverError, match="kernel matrix"):
        SVC(solver="decomposition").fit(X, y)
    with pytest.raises(UnsuitableSolverError, match="free intercept"):
        SVC(kernel="rbf", solver="decomposition", fit_intercept=False).fit(X, y)
    with pytest.raises(UnsuitableSolverError, match="hinge"):
        LogisticRegression(kernel="rbf", solver="decomposition").fit(X, y)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="block must be an integer >= 2"):
        BlockDecomposition(block=1)
    with pytest.raises(ValueError, match="forcing"):
        BlockDecomposition(forcing=1.0)


def test_the_table_of_rules_chooses_it_for_a_kernel_matrix() -> None:
    choice = choose(problem_of("hinge"))
    assert choice.name == "decomposition"
    assert "sparse dual" in choice.because


def test_a_negative_eigenvalue_found_on_the_way_is_an_error() -> None:
    _, y = data(200)
    matrix = kernel_matrix(Precomputed(), np.eye(200) + 3.0 * (y[:, None] != y))
    with pytest.raises(IndefiniteKernelError):
        solved(problem_of("hinge", 200, matrix), block=4)


def test_what_makes_no_sense_for_a_kernel_is_a_type_error() -> None:
    design = problem_of("hinge").design
    some = np.ones(400)
    asked = (
        lambda: design.adjoint(some[:, None]),
        lambda: design.row_squares(some, some),
        lambda: design.column_squares(some, some),
        design.largest,
        lambda: design.gram(some, some),
        lambda: design.columns(np.arange(3)),
        design.sweep_data,
    )
    for ask in asked:
        with pytest.raises(TypeError, match="kernel matrix"):
            ask()


def test_some_samples_have_the_inner_products_that_the_kernel_gives_them() -> None:
    design = problem_of("hinge").design
    index = np.array([7, 3, 250])
    whole = design.outer_gram()
    part = design.rows(index).outer_gram()
    np.testing.assert_allclose(part, whole[np.ix_(index, index)], rtol=1e-13)


def test_the_spread_is_that_of_the_samples_in_the_space_of_the_kernel() -> None:
    design = problem_of("hinge").design
    shares = np.arange(1.0, 401.0)
    shares /= shares.sum()
    values, axes = np.linalg.eigh(design.kernel_matrix.rows(np.arange(400)))
    features = axes * np.sqrt(np.maximum(values, 0.0))
    apart = features - shares @ features
    expected = np.sqrt(shares @ (apart**2).sum(axis=1))
    assert design.spread(shares) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(design.row_norms(), (features**2).sum(axis=1))


def test_a_time_limit_ends_a_fit_within_a_block() -> None:
    X, y = data(3000)
    with pytest.warns(UserWarning, match="time limit"):
        model = SVC(C=1e5, kernel="rbf", gamma=0.01, tol=1e-14, time_limit=0.05).fit(X, y)
    assert model.certificate_.seconds < 10.0


# -- threads --------------------------------------------------------------------------------------


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_has_one_thread_however_many_samples_as_values_are_computed_by_tiles() -> None:
    X, y = data(2100)
    seen: list[set[int]] = []
    with threadpool_limits(2, user_api="blas"):
        outside = blas_threads()
        callbacks = [lambda report: seen.append(blas_threads())]
        SVC(kernel="rbf", tol=1e-3, callbacks=callbacks).fit(X, y)
        assert blas_threads() == outside
    assert seen
    assert all(one == {1} for one in seen)


def test_a_large_matrix_that_is_given_keeps_the_threads() -> None:
    stored = kernel_matrix(Precomputed(), np.eye(2100))
    assert stored.product_bytes == 8 * 2100**2
    assert kernel_matrix(Rbf(1.0), np.eye(2100)).product_bytes < stored.product_bytes


def test_a_block_of_a_nu_svm_has_pairs_of_both_groups(rng) -> None:
    """Although one group violates most by weights that are too small, the other by too large."""
    n = 6000
    groups = np.arange(n) < n // 2
    signs = np.where(groups, 1.0, -1.0)
    terms = BoxedDual(
        low=np.minimum(signs, 0.0),
        high=np.maximum(signs, 0.0),
        curvature=np.zeros(n),
        linear=np.zeros(n),
        groups=groups,
        sums=(-n / 4.0, n / 4.0),
    )
    full = rng.random(n) < 0.5  # weights at their bound, the others are zero
    weights = np.where(full, signs, 0.0)
    falls = full == groups  # towards zero from above, or away from it below
    # the median of the one free weight of each group leaves small violations on one side
    gradient = np.where(groups == falls, 1e-3, 1.0) * rng.random(n) * np.where(falls, 1.0, -1.0)
    for free in (0, n - 1):
        weights[free], gradient[free] = 0.5 * signs[free], 0.0
    state = Blocks(weights=weights, product=np.zeros(n), block=np.empty(0, dtype=np.intp))
    block = BlockDecomposition()._next_block(terms, state, gradient)
    assert block.size == 2000
    for group in (groups, ~groups):
        for side in (falls, ~falls):
            assert np.count_nonzero(group[block] & side[block]) >= 150


def test_no_step_leaves_the_box_where_samples_are_repeated_and_losses_weigh_much() -> None:
    rng = np.random.RandomState(3)
    X = rng.randint(0, 3, (100, 3)).astype(float)
    y = X.sum(axis=1) + rng.randn(100) > 3
    weights = np.random.RandomState(5).choice([0.0, 0.1, 1.0, 1.0, 5.0], 100)
    model = SVC(C=1e4, kernel="rbf", gamma=0.3, tol=1e-8, solver="decomposition")
    model.fit(X, y, sample_weight=weights)
    best = svm.SVC(C=1e4, gamma=0.3, tol=1e-10).fit(X, y, sample_weight=weights)
    most = 1e4 * weights[model.support_]
    assert np.all(np.abs(model.dual_coef_[0]) <= most * (1 + 1e-12))
    expected = best.decision_function(X)[weights > 0]
    found = model.decision_function(X)[weights > 0]
    np.testing.assert_allclose(found, expected, atol=1e-3)
