"""A run that goes on from a waypoint ends where the run without a break ends, bit for bit."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from proxmargin.certificate import certify
from proxmargin.designs.kernel_design import KernelDesign
from proxmargin.minimize import Report, Waypoint, minimize
from proxmargin.outcome import Solution
from proxmargin.problem import Problem
from proxmargin.representer import certify_represented
from proxmargin.resuming.encoding import EncodingError, decoded, encoded
from proxmargin.stopping import RelativeChange, Stop
from tests.cases import (
    BINARY_SOLVERS,
    BUDGET_SOLVERS,
    CLASS_SOLVERS,
    KERNEL_SOLVERS,
    MULTICLASS_SOLVERS,
    SPECIAL_SOLVERS,
    binary_problem,
    multiclass_problem,
)

CASES = {
    **{name: (make, binary_problem) for name, make in BINARY_SOLVERS.items()},
    **{f"{name}, multiclass": (make, multiclass_problem) for name, make in MULTICLASS_SOLVERS.items()},
    **SPECIAL_SOLVERS,
    **CLASS_SOLVERS,
    **KERNEL_SOLVERS,
    **BUDGET_SOLVERS,
}  # fmt: skip
# solvers whose states are more than arrays and numbers
POINTS_ONLY: set[str] = set()


def stored(waypoint: Waypoint) -> tuple[Any, dict[str, np.ndarray]]:
    """What a file would give back."""
    arrays: dict[str, np.ndarray] = {}
    plain = json.loads(json.dumps(encoded(waypoint, arrays)))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    buffer.seek(0)
    return plain, dict(np.load(buffer, allow_pickle=False))


def run(name: str, stop: Stop, **options: Any) -> Solution:
    make, problem_of = CASES[name]
    problem: Problem = problem_of(np.random.default_rng(0))
    proof = certify_represented if isinstance(problem.design, KernelDesign) else certify
    return minimize(problem, make(), stop=stop, certify=proof, **options)


def assert_same(one: Solution, other: Solution) -> None:
    for field in ("coef", "intercept"):
        np.testing.assert_array_equal(getattr(one.point, field), getattr(other.point, field))
    np.testing.assert_array_equal(one.gap.dual_point, other.gap.dual_point)
    for field in ("primal", "gap", "n_iter", "stop_reason", "n_passes"):
        assert getattr(one.certificate, field) == getattr(other.certificate, field), field


@pytest.mark.parametrize("name", CASES)
def test_every_solver_resumes_bit_for_bit(name: str) -> None:
    stop, found = Stop(tol=1e-9), []

    def keep(report: Report) -> None:
        if not report.inner:
            found.append(stored(report.waypoint))

    whole = run(name, stop, callbacks=[keep])
    for plain, arrays in {0: found[0], 1: found[len(found) // 2], 2: found[-1]}.values():
        def resume(here: Stop, plain: Any = plain, arrays: Any = arrays) -> Waypoint:
            return decoded(plain, arrays, here)

        assert_same(run(name, stop, callbacks=[lambda report: None], resume=resume), whole)
