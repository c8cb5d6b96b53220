"""The interior point method in one call against the one that is called step by step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin import L2SVC, SVC, NuSVC
from proxmargin.compiled.products import vectors
from proxmargin.compiled.solvers import box_program
from proxmargin.compiled.solvers.box_program import box_minimum
from proxmargin.data.designs import DenseDesign, as_design, standardized
from proxmargin.functions.losses.margins.hinge import Hinge, HuberizedHinge, SquaredHinge
from proxmargin.functions.losses.margins.logistic import Logistic
from proxmargin.functions.losses.tail_mean import TailMean
from proxmargin.functions.penalties.elastic_net import Pinned, Ridge
from proxmargin.optimality.problem import Problem
from proxmargin.solvers.choice.names import choose, named_solver
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.interior.small_box import SmallInteriorPoint
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop
from tests.cases import ridge_problem

LOSSES = {"hinge": Hinge(), "huberized": HuberizedHinge(0.5), "squared": SquaredHinge()}
INTERCEPTS = {"free": Ridge(0.0), "ridge": Ridge(0.1), "pinned": Pinned()}


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", [*LOSSES, "tail mean"])
@pytest.mark.parametrize("data", ["rows", "columns", "float32", "standardised"])
def test_it_finds_the_optimum_that_single_steps_find(loss, intercept, data, rng) -> None:
    problem = ridge_problem(rng, LOSSES.get(loss), None, INTERCEPTS[intercept], n=60, p=5)
    if loss == "tail mean":
        signs, shares = problem.margins.signs[:, 0], problem.loss.shares
        free = intercept == "free"
        problem = replace(problem, loss=TailMean(signs, shares, 0.6, 60.0, free_intercept=free))
    matrix = problem.design.sweep_data()[0]
    if data == "columns":
        problem = replace(problem, design=DenseDesign(np.asfortranarray(matrix)))
    elif data == "float32":
        problem = replace(problem, design=DenseDesign(matrix.astype(np.float32)))
    elif data == "standardised":
        design = DenseDesign(100.0 + matrix * np.arange(1.0, 6.0))
        problem = replace(problem, design=standardized(design, problem.loss.shares))
    found = minimize(problem, SmallInteriorPoint())
    other = minimize(problem, InteriorPoint(), stop=Stop(tol=1e-9))
    assert found.status is other.status is Status.CONVERGED
    assert found.gap.relative_gap <= 1e-8
    both = found.gap.gap + other.gap.gap
    assert abs(found.gap.primal - other.gap.primal) <= both + 1e-12 * abs(other.gap.primal)


def test_single_iterations_are_limited_and_what_they_leave_goes_on(rng) -> None:
    problem = ridge_problem(rng, Hinge(), n=60, p=5)
    few = minimize(problem, SmallInteriorPoint(), stop=Stop(max_iter=2))
    assert few.certificate.n_iter == 2
    assert few.status is not Status.CONVERGED
    assert few.gap.dual <= minimize(problem, InteriorPoint()).gap.primal


def test_coordinates_without_an_upper_bound_divide_by_no_zero(rng, monkeypatch) -> None:
    """Compiled, zero times the infinity that this would be can become anything."""
    problem = ridge_problem(rng, SquaredHinge(), n=20, p=2)
    box = problem.loss.box
    parts = box.signs, box.upper, box.curvature, box.target, float(box.pull)
    given = problem.design.sweep_data(), problem.loss.shares, parts, (True, 0.0), 1.0, 1e-12, 50
    compiled = box_minimum(*given)[0]
    for name in ("add", "dot", "solve", "cholesky", "_least", "_lines"):
        plain = getattr(box_program, name).py_func
        for module in (box_program, vectors):
            monkeypatch.setattr(module, name, plain, raising=False)
    with np.errstate(divide="raise", invalid="raise"):
        coef, *_, steps = box_minimum.py_func(*given)
    assert 0 < steps < 50
    np.testing.assert_allclose(coef, compiled, rtol=1e-9)


@pytest.mark.parametrize("reason", ["sparse", "wide", "large", "weights", "no box"])
def test_it_takes_few_dense_entries_only(reason, rng) -> None:
    problem = ridge_problem(rng, Hinge(), n=60, p=5)
    matrix, loss = problem.design.sweep_data()[0], problem.margins
    changed: dict[str, Problem] = {
        "sparse": replace(problem, design=as_design(sp.csr_array(matrix))),
        "wide": ridge_problem(rng, Hinge(), n=5, p=6),
        "large": ridge_problem(rng, Hinge(), n=21_000, p=5),
        "weights": replace(problem, loss=replace(loss, weights=loss.weights * (loss.signs > 0))),
        "no box": ridge_problem(rng, Logistic(), n=60, p=5),
    }
    assert SmallInteriorPoint().objection(problem) is None
    assert SmallInteriorPoint().objection(changed[reason])


def test_a_callback_changes_no_bit_of_the_result(rng) -> None:
    problem = ridge_problem(rng, Hinge(), n=60, p=5)
    told: list[object] = []
    alone = minimize(problem, SmallInteriorPoint())
    heard = minimize(problem, SmallInteriorPoint(), callbacks=[told.append])
    assert told
    np.testing.assert_array_equal(alone.point.coef, heard.point.coef)
    assert alone.gap.gap == heard.gap.gap
    assert alone.certificate.n_iter == heard.certificate.n_iter


@pytest.mark.parametrize("model", [SVC(), SVC(C=1e4), L2SVC(), NuSVC(nu="0.9max")])
def test_few_samples_are_fitted_by_it(model, rng) -> None:
    X, y = rng.normal(size=(90, 4)), np.repeat(["a", "b", "c"], 30)
    X[:, 0] += np.repeat([0.0, 1.0, 2.0], 30)
    certificate = model.fit(X, y).certificate_
    assert certificate.converged
    assert "in one call" in certificate.because


def test_it_is_an_option_of_the_method_by_name(rng) -> None:
    problem = ridge_problem(rng, Hinge(), n=60, p=5)
    assert isinstance(
        named_solver("interior-point", {"at_once": True}, problem), SmallInteriorPoint
    )
    assert choose(problem).solver == SmallInteriorPoint()
    with pytest.raises(ValueError, match="at_once must be True or False"):
        named_solver("interior-point", {"at_once": 1}, problem)
