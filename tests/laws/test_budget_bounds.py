"""Lower bounds of models within a budget, whether the budget was met or not, against HiGHS."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from proxmargin import MulticlassSVC
from tests.oracles.programs import whole_program

SEEDS = range(12)


@pytest.mark.parametrize(
    ("solver", "max_iter"), [("auto", 0), ("auto", 3), ("auto", None), ("fbpd", 3), ("fbpd", 300)]
)
def test_no_lower_bound_is_above_the_optimum_of_a_linear_program(solver, max_iter) -> None:
    unmet = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(6, 14)), int(rng.integers(2, 6))
        X, y = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-3, 3), np.arange(n) % 3
        X[:, 0] += y * np.abs(X).max()
        budget = float(rng.uniform(0.2, 0.9))
        best = whole_program(X, y, 1.0, budget=budget).value
        model = MulticlassSVC(
            C=None, eta=budget * n, solver=solver, max_iter=max_iter, time_limit=2.0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            certificate = model.fit(X, y).certificate_
        assert certificate.dual <= best * (1 + 1e-7) + 1e-12
        assert certificate.primal >= best * (1 - 1e-6)
        assert certificate.converged or certificate.relative_gap > 1e-6
        unmet += np.isinf(certificate.primal)
    if max_iter in (0, 3) and solver == "fbpd":
        assert unmet > 0  # or nothing was tried
