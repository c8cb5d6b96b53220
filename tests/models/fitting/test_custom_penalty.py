"""`MarginClassifier` with a penalty of one's own: optima of CVXPY, certificates, scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from proxmargin import MarginClassifier, open_dataset, save_model
from proxmargin.files.errors import ModelFileError
from proxmargin.losses import Hinge, HuberizedHinge, Logistic, MarginLoss
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point
from proxmargin.penalties import CustomPenalty, Ridge
from tests.examples import example

EXAMPLES = example("huber_penalty")
HUBER = EXAMPLES.HuberPenalty(0.05, 0.3)  # strength and width, in units of the coefficients
SORTED = EXAMPLES.SortedL1(0.06, 0.01)  # first and last strength
FEATURES = 12
LOSSES: dict[str, tuple[MarginLoss, Any]] = {
    "logistic": (Logistic(), lambda t: cp.logistic(-t)),
    "huberized": (HuberizedHinge(1.0), lambda t: 0.5 * cp.huber(cp.pos(1 - t), 1.0)),
    "hinge": (Hinge(), lambda t: cp.pos(1 - t)),
}


def huber(w: Any) -> Any:
    return HUBER.strength * cp.sum(cp.huber(w, HUBER.width)) / (2 * HUBER.width)


def sorted_l1(w: Any) -> Any:
    """By parts: the strengths fall from each place to the next by a number not below zero."""
    strengths = np.append(np.linspace(SORTED.first, SORTED.last, FEATURES), 0.0)
    steps = -np.diff(strengths)
    return sum(step * cp.sum_largest(cp.abs(w), k + 1) for k, step in enumerate(steps))


PENALTIES = {"huber": (HUBER, huber), "sorted l1": (SORTED, sorted_l1)}
all_penalties = pytest.mark.parametrize("penalty", PENALTIES)
all_losses = pytest.mark.parametrize("loss", LOSSES)


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    y = np.where(np.arange(50) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((50, FEATURES)) + 0.6 * y[:, None] * (np.arange(FEATURES) < 4)
    return X, y, rng.integers(1, 4, 50).astype(np.float64)


def optimum(loss: str, penalty: str, X: Any, y: Any, weights: Any) -> float:
    w, b = cp.Variable(FEATURES), cp.Variable()
    losses = LOSSES[loss][1](cp.multiply(y, X @ w + b))
    objective = cp.sum(cp.multiply(weights / weights.sum(), losses)) + PENALTIES[penalty][1](w)
    problem = cp.Problem(cp.Minimize(objective))
    tight = {f"tol_{name}": 1e-11 for name in ("gap_abs", "gap_rel", "feas")}
    problem.solve(solver="CLARABEL", **tight)
    return float(problem.value)


@pytest.mark.sampled(3)
@all_penalties
@all_losses
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_find_the_optimum_of_an_interior_point_solver(data, loss, penalty, weighted) -> None:
    X, y, weights = data
    weights = weights if weighted else np.ones(y.size)
    model = MarginClassifier(LOSSES[loss][0], PENALTIES[penalty][0], tol=1e-7, time_limit=60)
    certificate = model.fit(X, y, sample_weight=weights).certificate_
    best = optimum(loss, penalty, X, y, weights)
    assert certificate.converged
    assert certificate.primal == pytest.approx(best, rel=1e-6)
    assert certificate.dual <= best * (1 + 1e-8)
    repeated = clone(model).fit(
        np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int))
    )
    assert repeated.certificate_.primal == pytest.approx(certificate.primal, rel=1e-6)


@all_penalties
@all_losses
def test_certificates_are_never_below_the_true_gap(data, loss, penalty, rng) -> None:
    X, y, _ = data
    best = optimum(loss, penalty, X, y, np.ones(y.size))
    model = MarginClassifier(LOSSES[loss][0], PENALTIES[penalty][0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for count in (0, 1, 3, 10, 30):
            found = clone(model).set_params(max_iter=count).fit(X, y).certificate_
            assert found.gap >= (found.primal - best) * (1 - 1e-6) - 1e-9
            assert found.dual <= best + 1e-9
    (problem,) = model._assemble(X, y, None).problems
    for scale in (0.0, 0.01, 0.3, 3.0):
        coef = scale * rng.standard_normal((FEATURES, 1)) * (rng.random((FEATURES, 1)) < 0.6)
        gap = certify(problem, Point(coef, np.zeros(1)))
        assert gap.primal == pytest.approx(problem.value(gap.point), rel=1e-12)
        assert gap.gap >= gap.primal - best - 1e-9


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, np.asfortranarray])
@all_penalties
def test_any_storage_and_standardised_data_give_the_same_model(data, penalty, form) -> None:
    X, y, _ = data
    model = MarginClassifier(Logistic(), PENALTIES[penalty][0], standardize=True, tol=1e-9)
    dense = clone(model).fit(X, y)
    given = clone(model).fit(form(X), y)
    np.testing.assert_allclose(given.coef_, dense.coef_, atol=1e-4)
    scaled = clone(model).fit(X * np.logspace(-4, 4, FEATURES), y)
    assert scaled.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-7)


@pytest.mark.slow
@all_penalties
@pytest.mark.parametrize("loss", [Logistic(), Hinge()], ids=repr)
def test_data_on_disk_are_fitted_in_passes(data, penalty, loss, tmp_path: Path) -> None:
    X, y, _ = data
    np.save(tmp_path / "X.npy", X)
    model = MarginClassifier(loss, PENALTIES[penalty][0], tol=1e-4, time_limit=60)
    found = clone(model).fit(open_dataset(tmp_path / "X.npy", target=y), y=None).certificate_
    assert found.converged
    assert found.primal == pytest.approx(clone(model).fit(X, y).certificate_.primal, rel=1e-4)


def test_a_separable_penalty_does_not_depend_on_the_units_of_the_features(data) -> None:
    X, y, _ = data
    model = MarginClassifier(Logistic(), HUBER, tol=1e-8).fit(X * np.logspace(-3, 3, FEATURES), y)
    assert model.certificate_.converged
    assert model.certificate_.n_iter < 1000


# -- several classes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class CentredRidge(CustomPenalty):
    l2: float = 0.1

    sums_to_zero = True

    def value(self, coef: Any) -> float:
        return 0.5 * self.l2 * np.sum(coef**2)

    def prox(self, coef: Any, step: Any) -> Any:
        return (coef - coef.mean(axis=1, keepdims=True)) / (1.0 + step * self.l2)

    def conjugate(self, dual: Any) -> float:
        return np.sum((dual - dual.mean(axis=1, keepdims=True)) ** 2) / (2.0 * self.l2)


# primal-dual steps, the only ones for a hinge and a penalty of one's own, stall below 1e-4 here
@pytest.mark.slow
@pytest.mark.parametrize(("loss", "tol"), [(HuberizedHinge(), 1e-6), (Hinge(), 1e-4)], ids=repr)
def test_classes_are_fitted_together_under_a_penalty_that_sums_to_zero(loss, tol) -> None:
    X, y = load_iris(return_X_y=True)
    own = MarginClassifier(loss, CentredRidge(0.1), tol=tol, time_limit=60).fit(X, y)
    same = MarginClassifier(loss, Ridge(0.1), tol=1e-8).fit(X, y)
    assert own.certificate_.converged
    assert own.certificate_.primal == pytest.approx(same.certificate_.primal, rel=tol)
    np.testing.assert_allclose(own.coef_, same.coef_, atol=0.02)
    assert own.coef_.shape == (3, 4)


@all_penalties
def test_other_penalties_of_all_classes_are_refused_and_one_against_the_rest_is_fitted(
    penalty,
) -> None:
    X, y = load_iris(return_X_y=True)
    model = MarginClassifier(Logistic(), PENALTIES[penalty][0])
    with pytest.raises(ValueError, match=r"sums_to_zero = False.*use multi_class='ovr'"):
        model.fit(X, y)
    each = model.set_params(multi_class="ovr").fit(X, y)
    assert len(each.certificate_) == 3
    assert all(one.converged for one in each.certificate_)


def test_a_penalty_of_all_classes_is_refused_for_two(data) -> None:
    with pytest.raises(ValueError, match="sums_to_zero = True"):
        MarginClassifier(Logistic(), CentredRidge()).fit(*data[:2])


# -- parameters -----------------------------------------------------------------------------------


def test_what_is_missing_is_named_before_any_work(data) -> None:
    class Bare(CustomPenalty):
        value, prox = EXAMPLES.HuberPenalty.value, EXAMPLES.HuberPenalty.prox
        strength, width = 0.05, 0.3

    for X, y in (data[:2], (None, None)):  # parameters come before the data
        with pytest.raises(ValueError, match=r"neither conjugate\(dual\) nor.*dual_norm\(dual\)"):
            MarginClassifier(penalty=Bare()).fit(X, y)
    with pytest.raises(ValueError, match="Ball, CustomPenalty, an object"):
        MarginClassifier(penalty=object()).fit(*data[:2])


def test_a_wrong_answer_during_a_fit_is_named(data) -> None:
    class Shapeless(EXAMPLES.HuberPenalty):  # type: ignore[misc]
        def prox(self, coef: Any, step: Any) -> Any:
            return super().prox(coef, step)[:, 0]

    with pytest.raises(ValueError, match=r"prox\(coef, step\) must return numbers of the shape"):
        MarginClassifier(penalty=Shapeless()).fit(*data[:2])


@pytest.mark.parametrize("solver", ["fapg-ws", "newton", "gcd", "interior-point"])
def test_solvers_that_do_not_take_it_say_why(data, solver) -> None:
    with pytest.raises(ValueError, match=f"{solver!r} cannot take this problem"):
        MarginClassifier(Logistic(), HUBER, solver=solver).fit(*data[:2])


class WithParams(CustomPenalty, BaseEstimator):  # type: ignore[misc]
    """A ridge whose parameters are those of scikit-learn's objects."""

    def __init__(self, l2: float = 0.1) -> None:
        self.l2 = l2

    def value(self, coef: Any) -> float:
        return 0.5 * self.l2 * np.sum(coef**2)

    def prox(self, coef: Any, step: Any) -> Any:
        return coef / (1.0 + step * self.l2)

    def conjugate(self, dual: Any) -> float:
        return 0.5 * np.sum(dual**2) / self.l2


@pytest.mark.parametrize(
    ("penalty", "name"),
    [(HUBER, "strength"), (WithParams(), "l2")],
    ids=["dataclass", "get_params"],
)
def test_its_parameters_are_searched_by_name(data, penalty, name) -> None:
    X, y, _ = data
    model = MarginClassifier(Logistic(), penalty)
    before = getattr(penalty, name)
    assert model.get_params()[f"penalty__{name}"] == before
    search = GridSearchCV(model, {f"penalty__{name}": [0.01, 0.5]}, cv=2).fit(X, y)
    found = search.best_estimator_.penalty
    assert type(found) is type(penalty)
    assert getattr(found, name) == search.best_params_[f"penalty__{name}"]
    assert getattr(penalty, name) == before
    with pytest.raises(ValueError, match="Invalid parameter penalty__nonsense"):
        model.set_params(penalty__nonsense=1.0)


def test_a_ridge_of_ones_own_is_the_ridge(data) -> None:
    X, y, _ = data
    own = MarginClassifier(Logistic(), WithParams(0.2), tol=1e-10).fit(X, y)
    same = MarginClassifier(Logistic(), Ridge(0.2), tol=1e-10).fit(X, y)
    np.testing.assert_allclose(own.coef_, same.coef_, atol=1e-4)
    assert own.certificate_.primal == pytest.approx(same.certificate_.primal, rel=1e-9)


def test_model_files_do_not_store_it(data, tmp_path: Path) -> None:
    model = MarginClassifier(Logistic(), HUBER).fit(*data[:2])
    with pytest.raises(ModelFileError, match=r"'penalty' cannot be stored.*HuberPenalty"):
        save_model(model, tmp_path / "model.pmz")
