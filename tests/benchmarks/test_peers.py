"""Every adapter reaches the optimum of the problems that it says it solves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.datasets import load
from benchmarks.measure import Clocked, Limits, Spec, judged_on, workers
from benchmarks.objective import (
    Hinge,
    HuberizedHinge,
    Logistic,
    Problem,
    SquaredHinge,
    alpha_max,
    relative_gap,
)
from benchmarks.peers import ALL, absent
from benchmarks.peers.drsvm import reference

DATA = "synthetic:70,40,6,0.3"
LOSSES = (Hinge(), HuberizedHinge(1.0), HuberizedHinge(0.5), SquaredHinge(), Logistic())
LIMITS = Limits(per_fit=60.0, for_compiling=240.0, repeats=0)
CERTIFIED = 1e-6  # relative gap
SINGLE_PRECISION = 1e-5  # of peers that compute in float32
# settings that suffice; the usual one is 1e-8
SETTING = {"HiGHS simplex": 1e-7, "HiGHS ipm": 1e-7, "Clarabel": 1e-10, "celer-pn": 1e-10}


def specs() -> Iterator[Spec]:
    data = load(DATA)
    for loss in LOSSES:
        for ratio in (1.0, 0.5):
            for free in (True, False):
                blank = Problem(data.design, data.labels, loss, 1.0, 0.0, fit_intercept=free)
                one = blank.with_strength(0.1 * alpha_max(blank, ratio), ratio)
                yield Spec(DATA, loss, one.l1, one.l2, fit_intercept=free)


def stated(spec: Spec) -> Problem:
    data = load(DATA)
    return spec.on(data.design, data.labels)


def duals(problem: Problem) -> list[np.ndarray]:
    """Dual points for the hinge, whose own slopes prove little."""
    return [reference(problem)] if isinstance(problem.loss, Hinge) else []


def listed() -> Iterator[object]:
    """Every peer by name; all but a quick one are for the slow tests."""
    for name in ALL:
        yield pytest.param(name, marks=[] if name == "sklearn-liblinear" else [pytest.mark.slow])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(listed()))
def test_a_peer_reaches_every_optimum_that_it_says_it_does(name: str) -> None:
    peer = ALL[name]
    # looked for, not imported: Snap ML makes its process flush small numbers to zero
    if absent(peer):
        pytest.skip(absent(peer))
    if name == "Clarabel":
        pytest.importorskip("cvxpy")
    wanted = SINGLE_PRECISION if peer.mark == "single precision" else CERTIFIED
    own = [spec for spec in specs() if peer.solves(stated(spec)) is None]
    assert own
    with workers([peer], LIMITS) as crew:
        for spec in own:
            answer = crew[name].clocked(spec, SETTING.get(name, 1e-8))
            assert isinstance(answer, Clocked), answer
            problem = stated(spec)
            assert judged_on(problem, duals(problem))(answer.fitted) <= wanted, spec


@pytest.mark.parametrize("name", ["liblinear", "celer-pn", "HiGHS simplex", "rehline"])
def test_a_sparse_design_gives_the_same_optimum(name: str) -> None:
    from scipy.sparse import csr_matrix

    peer = ALL[name]
    pytest.importorskip(peer.package)
    for problem in map(stated, specs()):
        if peer.solves(problem) is None:
            design = peer.prepared(csr_matrix(problem.design))
            fitted = peer.fit(replace(problem, design=design), SETTING.get(name, 1e-8))
            assert judged_on(problem, duals(problem))(fitted) <= CERTIFIED


def test_a_peer_that_is_not_installed_says_so() -> None:
    peer = replace(ALL["celer"], package="no_such_package_as_this")
    assert absent(peer) == "no_such_package_as_this is not installed"
    assert absent(ALL["proxmargin auto"]) == ""


def test_a_dual_of_highs_proves_its_optimum() -> None:
    pytest.importorskip("highspy")
    problem = stated(next(specs()))  # the linear program with a free intercept
    fitted = ALL["HiGHS simplex"].fit(problem, 1e-7)
    assert fitted.dual is not None
    assert relative_gap(problem, fitted.coef, fitted.intercept, [fitted.dual]) <= 1e-9
