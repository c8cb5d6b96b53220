"""The best point of a run."""

from __future__ import annotations

from dataclasses import replace

from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.unpenalised import null_point
from proxmargin.solvers.loop.run import is_better
from tests.cases import ridge_problem


def test_a_better_point_of_a_gap_of_zero(rng) -> None:
    """The gap cannot fall below zero: the residual alone tells which point is better."""
    problem = ridge_problem(rng)
    gap = replace(certify(problem, null_point(problem)), gap=0.0, rounding=0.0)
    near, far = replace(gap, kkt_residual=1e-12), replace(gap, kkt_residual=1e-3)
    assert is_better(near, far)
    assert not is_better(far, near)
