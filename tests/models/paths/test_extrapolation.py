"""Paths of hinges: starts on the line through the last two solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proxmargin import SVC, ElasticNetSVC, margin_path
from proxmargin.models.paths import descent
from proxmargin.models.paths.descent import _fitted, extrapolated
from proxmargin.models.paths.grid import at_strength, problems_of
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point


def wide() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    X = rng.standard_normal((40, 400))
    return X, np.where(X[:, :4].sum(axis=1) + rng.standard_normal(40) > 0, 1, -1)


def solved(model: Any, grid: list[float]) -> list[tuple[Problem, Point]]:
    assembly = model._assemble(*wide(), None)
    found = []
    for strength in grid:
        one = at_strength(model, strength)
        problems = problems_of(one, assembly)
        (solution,) = _fitted(one, assembly, problems, [null_point(problems[0])])
        found.append((problems[0], solution.point))
    return found


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_between_corners_the_line_leads_to_the_solution(ratio: float) -> None:
    reach = np.cumsum([2.0, 1e-3, 1e-3 * ratio])
    (problem, before), (_, last), (_, following) = solved(
        ElasticNetSVC(l1_ratio=0.5, tol=1e-12), list(1.0 / reach)
    )
    start = extrapolated(problem, last, before, tuple(reach.tolist()))
    moved = np.abs(following.coef - last.coef).max()
    assert moved > 1e-6
    np.testing.assert_allclose(start.coef, following.coef, atol=0.02 * moved)
    np.testing.assert_allclose(start.intercept, following.intercept, atol=0.02 * moved)
    assert start.dual is not None
    assert following.dual is not None
    shift = last.dual - following.dual  # type: ignore[operator]
    np.testing.assert_allclose(start.dual, following.dual, atol=0.02 * np.abs(shift).max())


def test_where_the_line_tells_nothing_the_last_solution_is_the_start() -> None:
    (problem, before), (_, last) = solved(ElasticNetSVC(l1_ratio=0.5), [0.5, 0.48])
    for at in ((5.0, 5.0, 6.0), (5.0, 5.1, 9.0), (5.0, 5.1, 5.0), (5.0, 5.1, np.inf)):
        assert extrapolated(problem, last, before, at) is last
    ((lasso, one),) = solved(ElasticNetSVC(l1_ratio=1.0), [0.3])
    assert extrapolated(lasso, one, one, (5.0, 5.1, 5.2)) is one
    assert extrapolated(problem, last._replace(dual=None), before, (5.0, 5.1, 5.2)).dual is None


def test_paths_take_fewer_steps_and_lead_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wide()
    paths = []
    for furthest in (descent.FURTHEST, 0.0):
        monkeypatch.setattr(descent, "FURTHEST", furthest)
        paths.append(margin_path(ElasticNetSVC(l1_ratio=0.5, tol=1e-8), X, y, n_alphas=60, eps=0.1))
    new, old = paths
    steps = [sum(one.n_iter for one in path.certificates) for path in paths]
    assert steps[0] < 0.8 * steps[1]
    assert all(one.converged for one in new.certificates)
    for one, other in zip(new.certificates, old.certificates, strict=True):
        assert one.dual <= other.primal * (1 + 1e-12)
        assert other.dual <= one.primal * (1 + 1e-12)


def test_strengths_may_repeat_end_at_zero_or_be_of_several_classes() -> None:
    X, y = wide()
    path = margin_path(ElasticNetSVC(l1_ratio=0.5), X, y, alphas=[0.5, 0.5, 0.4, 0.0])
    assert all(one.converged for one in path.certificates[:3])
    three = np.where(X[:, 9] > 1.0, 2, y)
    path = margin_path(SVC(tol=1e-6, solver="multiplier-newton"), X, three, n_alphas=6)
    assert all(one.converged for one in path.certificates)
