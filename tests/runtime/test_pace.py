"""What a step will take, and which steps fit into the time that is left."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.compiled.clock import clock
from proxmargin.data.designs import DenseDesign, SparseDesign
from proxmargin.losses import Hinge, MarginSum
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import Ridge
from proxmargin.runtime.threads import affordable, operations_in
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.loop.solver import Stop


def hinges(design: DenseDesign | SparseDesign) -> Problem:
    n = design.n_samples
    signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[:, None]
    loss = MarginSum(Hinge(), signs, np.full((n, 1), 1.0 / n), float(n))
    return Problem(loss, Ridge(1.0 / n), design, Ridge(0.0))


def test_without_a_limit_of_time_every_step_is_affordable() -> None:
    assert affordable(1e30, np.inf)
    assert operations_in(np.inf) == np.inf


def test_a_step_is_affordable_where_it_is_short_beside_what_is_left() -> None:
    assert affordable(1e6, clock() + 10.0)
    assert not affordable(1e15, clock() + 10.0)
    assert not affordable(1.0, clock() - 1.0)


def test_runs_that_share_the_time_get_equal_parts_of_what_is_left() -> None:
    stop = Stop(time_limit=8.0).started(100.0, ())
    assert stop.shared(100.0, 4).deadline == 102.0
    assert stop.shared(104.0, 2).deadline == 106.0
    assert stop.shared(110.0, 1).deadline == 108.0
    assert Stop().shared(0.0, 3).deadline == np.inf


def test_systems_that_would_outlast_the_limit_are_left_to_other_solvers() -> None:
    problem = hinges(DenseDesign(np.random.default_rng(0).standard_normal((900, 800))))
    assert choose(problem).name == "interior-point"
    assert choose(problem, clock() + 1e-3).name != "interior-point"
    assert choose(problem, clock() + 1e4).name == "interior-point"


@pytest.mark.parametrize(("features", "solver"), [(2000, "interior-point"), (4000, "fbpd")])
def test_no_matrix_is_formed_that_is_larger_than_sparse_data(features: int, solver: str) -> None:
    # many samples of features in very different units, which coordinate descent is not chosen for
    rng, units = np.random.default_rng(1), np.geomspace(1.0, 1e8, features)
    X = sp.random_array((8 * features, features), density=5e-4, format="csr", rng=rng) * units
    assert choose(hinges(SparseDesign(X.tocsr()))).name == solver
