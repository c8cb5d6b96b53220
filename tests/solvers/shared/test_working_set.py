"""The rounds of a working-set method: what one of them proves serves the next ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from proxmargin import HuberizedSVC, alpha_max
from proxmargin.optimality.certificates.certify import certify
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.proximal_gradient import ProximalGradient
from proxmargin.solvers.shared.working_set import WorkingSet
from tests.cases import binary_problem
from tests.shared_data import data_root, load_set, needs_data


def test_the_dual_point_of_a_round_proves_as_much_for_all_features(rng) -> None:
    problem = binary_problem(rng, p=300)
    problem = replace(problem, penalty=problem.penalty.times(3.0))
    solver = WorkingSet(ProximalGradient(), smallest=4)
    solution = minimize(problem, solver, stop=Stop(tol=1e-8))
    assert solution.status is Status.CONVERGED
    state = solution.state
    again = certify(problem, solver.point(problem, state), dual=solver.dual(problem, state))
    assert again.relative_gap <= 1e-8


@needs_data("data/srbct.npz")
def test_rounds_end_where_gradients_of_the_loss_prove_little() -> None:
    """A dual point that is no gradient proves 1e-3 at coefficients whose gradient proves 1e-2."""
    X, y = load_set("srbct")
    with np.load(data_root() / "data" / "srbct.npz", allow_pickle=False) as file:
        X, y = X[~file["test"]], y[~file["test"]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = HuberizedSVC(l1_ratio=0.99, delta=0.1, solver="fapg-ssnal", max_iter=1000)
    model.set_params(solver_options={"working_set": True})
    model.set_params(alpha=0.01 * float(alpha_max(model, X, y))).fit(X, y)
    assert model.certificate_.converged
