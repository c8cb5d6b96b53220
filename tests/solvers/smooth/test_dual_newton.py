"""Newton's method on the dual, where the inner products do not tell the dual point."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin import LogisticRegression


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["zeros", "constant", "repeated", "centred"])
def test_singular_inner_products_are_certified(
    kind: str, fit_intercept: bool, rng: np.random.Generator
) -> None:
    X = {
        "zeros": np.zeros((20, 30)),
        "constant": np.full((20, 30), 7.3),
        "repeated": np.repeat(rng.standard_normal((5, 30)), 4, axis=0),
        "centred": np.outer(np.arange(20.0), rng.standard_normal(30)),
    }[kind]
    y = np.where(np.arange(20) % 3, 1, -1)
    told = [
        LogisticRegression(solver=solver, fit_intercept=fit_intercept).fit(X, y).certificate_
        for solver in ("dual-newton", "fapg")
    ]
    assert all(certificate.converged for certificate in told)
    assert told[0].dual <= told[1].primal
    assert told[1].dual <= told[0].primal
