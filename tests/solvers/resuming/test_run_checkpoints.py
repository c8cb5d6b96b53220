"""A run that goes on from a checkpoint ends where the run without a break ends, bit for bit."""

from __future__ import annotations

import io
import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.certificates.representer import certify_represented
from proxmargin.optimality.problem import Problem
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Report, RunCheckpoint, Solution
from proxmargin.solvers.loop.solver import RelativeChange, Stop
from proxmargin.solvers.resuming.codec import StateCodec
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
    **{f"{name}, joint": (make, multiclass_problem) for name, make in MULTICLASS_SOLVERS.items()},
    **SPECIAL_SOLVERS,
    **CLASS_SOLVERS,
    **KERNEL_SOLVERS,
    **BUDGET_SOLVERS,
}


def stored(run_checkpoint: RunCheckpoint) -> tuple[Any, dict[str, np.ndarray]]:
    """What a file would give back."""
    arrays: dict[str, np.ndarray] = {}
    plain = json.loads(json.dumps(StateCodec(arrays).encode(run_checkpoint)))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    buffer.seek(0)
    return plain, dict(np.load(buffer, allow_pickle=False))


def restored(plain: Any, arrays: dict[str, np.ndarray], stop: Stop) -> Any:
    return StateCodec(arrays, stop).decode(plain)


def run(name: str, stop: Stop, **options: Any) -> Solution:
    make, problem_of = CASES[name]
    problem: Problem = problem_of(np.random.default_rng(0))
    proof = certify_represented if isinstance(problem.design, KernelDesign) else certify
    return minimize(problem, make(), stop=stop, certify=proof, **options)


def assert_same(one: Solution, other: Solution) -> None:
    for field in ("coef", "intercept"):
        np.testing.assert_array_equal(getattr(one.point, field), getattr(other.point, field))
    np.testing.assert_array_equal(one.gap.dual_point, other.gap.dual_point)
    for field in ("primal", "gap", "n_iter", "stop_reason"):
        assert getattr(one.certificate, field) == getattr(other.certificate, field), field


def assert_resumes(name: str, stop: Stop) -> None:
    """From the first, the middle and the last certificate."""
    kept = []

    def keep(report: Report) -> None:
        if not report.inner:
            kept.append(stored(report.run_checkpoint))

    whole = run(name, stop, callbacks=[keep])
    for plain, arrays in (kept[0], kept[len(kept) // 2], kept[-1]):
        resume = partial(restored, plain, arrays)
        assert_same(run(name, stop, callbacks=[lambda report: None], resume=resume), whole)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_every_solver_resumes_bit_for_bit(name: str) -> None:
    assert_resumes(name, Stop(tol=1e-9))


@pytest.mark.parametrize("name", ["b-pgh", "fapg-ws", "gcd", "b-pgh-2"])
def test_a_count_of_small_changes_goes_on(name: str) -> None:
    assert_resumes(name, Stop(tol=1e-6, rule=RelativeChange(1e-6)))


def test_work_before_the_break_counts() -> None:
    kept = []
    whole = run(
        "fapg", Stop(tol=1e-9), callbacks=[lambda report: kept.append(report.run_checkpoint)]
    )
    spent = run("fapg", Stop(tol=1e-9), resume=lambda stop: kept[-1]).certificate
    assert spent.n_passes >= whole.certificate.n_passes
    assert spent.seconds >= kept[-1].seconds > 0
