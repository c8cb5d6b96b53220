"""The loop: limits, the best point, and what is left of a run that ends short."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from proxmargin import LogisticRegression
from proxmargin.compiled.clock import clock
from proxmargin.data.designs import DenseDesign
from proxmargin.functions.projections import lp_ball
from proxmargin.losses import MarginSum, SquaredHinge
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.penalties import ElasticNet, Ridge
from proxmargin.solvers.callbacks import History
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Report, Status
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.proximal_gradient import CoordinateDescent
from tests.cases import binary_problem, hinge_problem, tail_problem


def raw_data_problem(strength: float) -> Problem:
    """Squared hinge on features whose scales differ by a factor of a million."""
    X, y = load_breast_cancer(return_X_y=True)
    signs, shares = np.where(y == 1, 1.0, -1.0)[:, None], np.full((y.size, 1), 1.0 / y.size)
    loss = MarginSum(SquaredHinge(), signs, shares, float(y.size))
    return Problem(loss, Ridge(strength / y.size), DenseDesign(X), Ridge())


def test_a_method_that_cycles_gives_up_and_is_no_worse_than_its_start() -> None:
    problem, history = raw_data_problem(1.0), History()
    solution = minimize(problem, SOLVERS["fapg"](), callbacks=[history], stop=Stop(tol=1e-6))
    assert min(history.column("primal")) > 1e6  # nowhere near
    assert solution.status is Status.STALLED
    assert not solution.certificate.converged
    assert solution.certificate.n_iter < 2000
    at_zero = problem.value(null_point(problem))
    assert solution.certificate.primal <= at_zero
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal)


@pytest.mark.parametrize("name", ["fapg-star", "interior-point"])
def test_a_run_that_ends_short_keeps_a_good_start(name: str, rng) -> None:
    problem = hinge_problem(rng)
    good = minimize(problem, SOLVERS["interior-point"](), stop=Stop(tol=1e-8)).point
    start = Point(1.01 * good.coef, good.intercept)
    solution = minimize(problem, SOLVERS[name](), start=start, stop=Stop(tol=1e-9, max_iter=1))
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.certificate.primal <= problem.value(start) * (1 + 1e-12)
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal)


def test_the_dual_point_of_a_solution_proves_its_bound(rng) -> None:
    # zero coefficients are optimal: every point has the same objective, dual points get better
    made = tail_problem(rng)
    problem = Problem(made.loss, ElasticNet(1e3, 1.0), made.design, Ridge())
    solution = minimize(problem, SOLVERS["fapg-star"](), stop=Stop(tol=1e-7))
    assert solution.certificate.converged
    assert not solution.point.coef.any()
    pulled = problem.design.adjoint(solution.gap.dual_point)
    assert np.abs(pulled).max() <= 1e3 * (1 + 1e-12)
    assert problem.penalty.conjugate(pulled) <= solution.certificate.gap + 1e-12


def test_what_is_known_of_another_point_tightens_the_gap(rng) -> None:
    problem = hinge_problem(rng)
    known = minimize(problem, SOLVERS["interior-point"](), stop=Stop(tol=1e-10))
    alone, told = (
        minimize(problem, SOLVERS["fapg-star"](), stop=Stop(tol=1e-10, max_iter=50), known=gap)
        for gap in (None, known.gap)
    )
    assert told.certificate.gap <= alone.certificate.gap
    assert told.certificate.dual >= known.certificate.dual - 1e-12


class Boasting(CoordinateDescent):
    """Believes that its scores are those of the solution."""

    uses_updated_scores: np.ndarray

    def scores(self, problem, state):
        return self.uses_updated_scores


def test_scores_that_a_solver_believes_in_prove_nothing(rng) -> None:
    problem = binary_problem(rng)
    optimum = minimize(problem, CoordinateDescent(), stop=Stop(tol=1e-12))
    solver = Boasting()
    object.__setattr__(
        solver,
        "uses_updated_scores",
        problem.design.scores(optimum.point.coef) + optimum.point.intercept,
    )
    found = minimize(problem, solver, start=optimum.point, stop=Stop(max_iter=0))
    assert found.certificate.converged  # they are true here
    shifted = Point(1.5 * optimum.point.coef, optimum.point.intercept)
    found = minimize(problem, solver, start=shifted, stop=Stop(max_iter=0))
    best = optimum.certificate.primal
    assert found.certificate.gap >= problem.value(found.point) - best - 1e-12


class Diverging(CoordinateDescent):
    """Its coefficients stop being numbers after some iterations."""

    after: int

    def point(self, problem, state):
        point = super().point(problem, state)
        return point if state.n_iter < self.after else Point(point.coef * np.nan, point.intercept)


@pytest.mark.parametrize("after", [20, 0])
def test_a_run_that_diverges_keeps_its_best_point_and_if_it_had_none_its_start(after, rng) -> None:
    problem, history, solver = binary_problem(rng), History(), Diverging()
    object.__setattr__(solver, "after", after)
    solution = minimize(problem, solver, callbacks=[history], stop=Stop(tol=1e-15))
    assert solution.status is Status.DIVERGED
    known = [gap for gap in history.column("gap") if np.isfinite(gap)]
    assert len(known) == after // 10
    assert solution.certificate.gap <= min(known, default=np.inf)
    assert solution.certificate.primal <= problem.value(null_point(problem)) * (1 + 1e-12)
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal)


class Lost(CoordinateDescent):
    """Comes to a projection of what is no point."""

    def step(self, problem, state):
        if state.n_iter == 5:
            lp_ball(np.array([np.nan]), 1.0, 3.0)
        return super().step(problem, state)


def test_a_projection_of_no_point_is_told_as_a_run_that_diverges(rng) -> None:
    problem = binary_problem(rng)
    solution = minimize(problem, Lost(), stop=Stop(tol=1e-15))
    assert solution.status is Status.DIVERGED
    assert np.isfinite(solution.certificate.gap)
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal)


class Failing(CoordinateDescent):
    """Raises in the first step after the tolerance was met."""

    polishing = 1
    met = False

    def observe(self, problem, state, gap):
        object.__setattr__(self, "met", gap.relative_gap <= 1e-6)
        return super().observe(problem, state, gap)

    def step(self, problem, state):
        if self.met:
            raise np.linalg.LinAlgError("singular")
        return super().step(problem, state)


def test_what_was_good_enough_survives_a_failure_in_polishing(rng) -> None:
    found = minimize(binary_problem(rng), Failing(), stop=Stop(tol=1e-6))
    assert found.status is Status.CONVERGED
    assert found.certificate.relative_gap <= 1e-6


THREADED = """
import numpy as np, threadpoolctl
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer
from proxmargin import HuberizedSVC

X, y = load_breast_cancer(return_X_y=True)
seen = []

def count(report):
    blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
    seen.append(max(each.num_threads for each in blas.lib_controllers))

def fitted():
    return HuberizedSVC(alpha=0.01, standardize=True, callbacks=[count]).fit(X, y).coef_

before = max(i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas")
first = fitted()
others = Parallel(3, backend="threading")(delayed(fitted)() for _ in range(6))
after = max(i["num_threads"] for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas")
assert set(seen) == {1}, seen
assert before == after, (before, after)
assert all(np.array_equal(first, other) for other in others)
"""


@pytest.mark.slow
def test_fits_in_threads_have_one_thread_each_and_the_same_bits() -> None:
    two = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", THREADED], env=two, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_run_ends_where_rounding_is_all_that_is_left_and_says_so() -> None:
    X = np.random.default_rng(3).standard_normal((60, 5)) + 1e8
    signs, shares = np.where(X[:, :1] > 1e8, 1.0, -1.0), np.full((60, 1), 1.0 / 60)
    loss = MarginSum(SquaredHinge(), signs, shares, 60.0)
    problem = Problem(loss, ElasticNet(0.009, 0.001), DenseDesign(X), Ridge())
    solution = minimize(problem, SOLVERS["fapg"](), stop=Stop(tol=1e-9))
    assert solution.status is Status.ROUNDED
    assert not solution.certificate.converged
    assert solution.certificate.n_iter < 1000
    assert solution.certificate.gap <= 1.5 * solution.gap.rounding


def test_what_a_callback_raises_is_raised_in_polishing_too() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    told = []

    def callback(report: Report) -> None:
        told.append(report.gap.relative_gap)
        if sum(gap <= 1e-6 for gap in told) == 2:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        LogisticRegression(standardize=True, callbacks=[callback]).fit(X, y)


def test_the_last_certificate_is_within_the_time_limit(
    monkeypatch: pytest.MonkeyPatch, rng
) -> None:
    problem, seconds = binary_problem(rng), 0.0

    def slowly(*arguments, **options):
        nonlocal seconds
        seconds += 3.0
        return certify(*arguments, **options)

    for module in ("minimize", "run"):
        monkeypatch.setattr(f"proxmargin.solvers.loop.{module}.clock", lambda: seconds)
    stop = Stop(tol=1e-14, time_limit=10.0)
    solution = minimize(problem, CoordinateDescent(), stop=stop, certify=slowly)
    assert solution.status is Status.TIME_LIMIT
    assert 0.0 < seconds <= 10.0


def test_work_ends_a_run_as_the_time_limit_does(rng) -> None:
    problem, solver = hinge_problem(rng), SOLVERS["fapg-star"]()
    stop = Stop(tol=0.0, most_work=1.0)
    solution = minimize(problem, solver, stop=stop)
    assert solution.status is Status.WORK_LIMIT
    assert solution.certificate.n_iter == 1
    assert 0.0 <= solution.certificate.gap < np.inf
    assert stop.is_over


def test_a_run_continues_within_the_work_that_others_have_left(rng) -> None:
    problem, solver = hinge_problem(rng), SOLVERS["fapg-star"]()
    stop = Stop(tol=0.0, most_work=2e7)
    whole = minimize(problem, solver, stop=stop)
    assert 2e7 <= stop.effort.taken < 2.2e7
    more = minimize(problem, solver, stop=replace(stop, most_work=3e7), start=whole.state)
    assert more.status is Status.WORK_LIMIT
    assert 3e7 <= stop.effort.taken < 3.2e7


def test_reports_that_only_callbacks_ask_for_cost_a_run_no_work() -> None:
    ends = []
    for callbacks in ([], [History(every=1)]):
        problem, stop = hinge_problem(np.random.default_rng(0)), Stop(tol=0.0, most_work=1e7)
        found = minimize(problem, SOLVERS["fapg-star"](), stop=stop, callbacks=callbacks)
        assert found.status is Status.WORK_LIMIT
        ends.append((found.certificate.n_iter, stop.effort.taken))
    assert ends[0] == ends[1]


def test_runs_that_share_a_limit_share_its_work_too() -> None:
    stop = Stop(most_work=40.0)
    first = stop.shared(clock(), 4)
    assert first.most_work == 10.0
    first.effort.taken = 10.0
    assert first.is_over
    assert not stop.is_over
    assert stop.shared(clock(), 3).most_work == 20.0
    assert stop.shared(clock(), 1).most_work == 40.0


def test_runs_at_the_same_time_count_work_of_their_own() -> None:
    stop = Stop(most_work=40.0)
    stop.effort.taken = 10.0
    first, second = (stop.apart(stop, 3) for _ in range(2))
    first.effort.taken = 10.0
    assert first.is_over
    assert not second.is_over
    assert not stop.is_over


def test_the_published_bound_of_losses_is_not_below_zero(rng) -> None:
    # weak against the rounding of dual points, whose bounds are far below zero
    problem = replace(binary_problem(rng), penalty=ElasticNet(1e-60, 1e-60))
    solution = minimize(problem, SOLVERS["fapg"](), stop=Stop(tol=1e-9, max_iter=3))
    told = solution.certificate
    assert solution.gap.dual < -1e10
    assert told.dual == pytest.approx(0.0, abs=1e-12 * told.primal)
    assert told.gap == pytest.approx(told.primal)
    assert told.relative_gap == pytest.approx(1.0)


def test_a_gap_of_which_much_is_rounding_is_not_waited_for(rng) -> None:
    def no_less(*arguments, **options):
        return replace(certify(*arguments, **options), gap=1e-3, rounding=1e-4)

    stop = Stop(tol=1e-8, max_iter=5_000)
    solution = minimize(binary_problem(rng), SOLVERS["fapg"](), stop=stop, certify=no_less)
    assert solution.status is Status.STALLED
    assert solution.certificate.n_iter < 2_000
    # with some kernels of BLAS the iterates reach a fixed point, at which the solver itself ends
    assert solution.state.finished or solution.certificate.n_iter > 1_000
