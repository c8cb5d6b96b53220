"""The examples of solvers and models of one's own work, and so does the code of their pages."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from proxmargin import ElasticNetSVC, HuberizedSVC, MarginClassifier, margin_path
from proxmargin.losses import Logistic, Rescaled
from proxmargin.penalties import ElasticNet
from tests.examples import example

PAGES = Path(__file__).parents[2] / "docs" / "developing"
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_solver_finds_what_the_default_finds() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    solver = example("plain_gradient").PlainGradient()
    model = HuberizedSVC(alpha=0.1, standardize=True, solver=solver, tol=1e-8).fit(X, y)
    same = HuberizedSVC(alpha=0.1, standardize=True, tol=1e-9).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.solver == "plain-gradient"
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=5e-3, atol=1e-3)


def test_the_solver_stops_at_its_limit_and_refuses_a_loss_with_kinks() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    solver = example("plain_gradient").PlainGradient()
    with pytest.warns(UserWarning, match="stopped before its tolerance was met"):
        model = HuberizedSVC(alpha=0.1, standardize=True, solver=solver, max_iter=20).fit(X, y)
    assert model.n_iter_ == 20
    with pytest.raises(ValueError, match="cannot take this problem"):
        ElasticNetSVC(solver=solver).fit(X, y)


@pytest.mark.slow  # kernels are compiled for it
def test_the_model_is_that_of_its_loss_and_takes_part_in_paths() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kind = example("soft_hinge").SoftHinge
    model = clone(kind(alpha=0.02, l1_ratio=0.9, width=0.1)).fit(X, y)
    loss = Rescaled(Logistic(), height=0.1, slope=10.0, shift=-10.0)
    same = MarginClassifier(loss, ElasticNet.from_mixture(0.02, 0.9)).fit(X, y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="width"):
        kind(width=0.0).fit(X, y)
    flowers, names = load_iris(return_X_y=True)
    assert margin_path(kind(l1_ratio=1.0), flowers, names, n_alphas=4).n_nonzero[0] == 0


# kernels are compiled for that of a loss
@pytest.mark.parametrize("page", [pytest.param("loss.md", marks=pytest.mark.slow), "solver.md"])
def test_the_code_of_a_page_runs(page: str) -> None:
    blocks = CODE.findall((PAGES / page).read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        exec(block, names)
    if "model" in names:
        assert names["model"].certificate_.converged
