"""Grids of settings give the models of fits apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

from proxmargin import DWD, L2SVC, SVC, LogisticRegression, MarginFDA, NuSVC
from proxmargin.models.classifiers import kernel_machine
from proxmargin.paths import fitted_grid


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (L2SVC(standardize=True), [{"C": C} for C in (0.01, 0.1, 1.0)]),
        (LogisticRegression(class_weight="balanced"), [{"C": C} for C in (10.0, 0.1)]),
        (DWD(), [{"nu": nu} for nu in (0.5, 2.0)]),
        (MarginFDA(standardize=True), [{"kappa": kappa} for kappa in ("0.2max", "0.8max")]),
        (NuSVC(), [{"nu": nu} for nu in ("auto", "0.5max")]),
        (L2SVC(), [{"standardize": flag, "C": 0.1} for flag in (True, False)]),
        (SVC(kernel="rbf"), [{"C": C} for C in (0.1, 1.0)]),
        (NuSVC(kernel="rbf", standardize=True), [{"nu": nu} for nu in (0.2, 0.4)]),
        (LogisticRegression(kernel="rbf"), [{"C": C} for C in (0.1, 1.0)]),
        (SVC(kernel="rbf"), [{"C": 1.0, "gamma": gamma} for gamma in (0.1, 1.0)]),
    ],
    ids=lambda case: type(case).__name__,
)
@pytest.mark.parametrize("wide", [True, False])
def test_a_grid_of_settings_gives_the_models_of_fits_apart(model, settings, wide: bool) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((24, 40) if wide else (60, 5))
    y = np.arange(len(X)) % 3
    X[:, 0] += 3.0 * y
    X[:, 1] -= 4.0 * (y == 1)
    model.set_params(tol=1e-8)
    together = list(fitted_grid(model, settings, X, y))
    assert len(together) == len(settings)
    for one, setting in zip(together, settings, strict=True):
        apart = clone(model).set_params(**setting).fit(X, y)
        assert one.get_params() == apart.get_params()
        assert one.certificate_.converged
        np.testing.assert_allclose(
            one.decision_function(X), apart.decision_function(X), rtol=1e-3, atol=1e-3
        )
        for a, b in zip(one.certificate_, apart.certificate_, strict=True):
            assert abs(a.primal - b.primal) <= a.gap + b.gap + 1e-12 * abs(b.primal)


def test_a_grid_checks_every_setting() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    models = fitted_grid(L2SVC(standardize=True), [{"C": 0.1}, {"C": -1.0}], X, y)
    assert next(models).certificate_.converged
    with pytest.raises(ValueError, match="C must be"):
        next(models)


def test_the_strengths_of_a_kernel_machine_share_its_kernel_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    made, whole = [], kernel_machine.kernel_matrix

    def counted(*arguments, **options):
        made.append(whole(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(kernel_machine, "kernel_matrix", counted)
    model = SVC(kernel="rbf", standardize=True)
    settings = [{"C": C} for C in (0.1, 1.0, 10.0)]
    models = list(fitted_grid(model, settings, X[:100], y[:100]))
    assert len(made) == 1
    assert made[0].counter.passes <= 1.0
    assert [each.C for each in models] == [0.1, 1.0, 10.0]
    with pytest.raises(ValueError, match="C must be"):
        list(fitted_grid(model, [{"C": 1.0}, {"C": -1.0}], X[:100], y[:100]))
