"""Laws of what rounding is allowed for: against exact arithmetic, and against random changes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from proxmargin import SquaredHingeSVC
from proxmargin.data.designs import DenseDesign, SparseDesign, StandardizedDesign
from proxmargin.data.designs.views import published
from proxmargin.losses import Loss, MarginLoss
from proxmargin.penalties import Penalty
from tests.cases import (
    COMPARISONS,
    COUPLED,
    DESIGNS,
    INTERCEPTS,
    JOINT,
    LEVEL_SETS,
    MARGIN_LOSSES,
    PENALTIES,
    SHIFTED,
    SUMS,
    as_seen,
    into_domain,
    small_matrix,
)

OFFSETS = {"centred": 0.0, "far from zero": 1e9}
every_offset = pytest.mark.parametrize("offset", OFFSETS.values(), ids=OFFSETS.keys())


def exactly(left: np.ndarray, right: np.ndarray) -> list[Fraction]:
    """``left @ right`` for a matrix and a vector, without rounding."""
    factors = [Fraction(float(value)) for value in right]
    return [
        sum((Fraction(float(x)) * w for x, w in zip(row, factors, strict=True)), Fraction(0))
        for row in left
    ]


def assert_encloses(values: np.ndarray, error: np.ndarray, exact: list[Fraction]) -> None:
    bounds = np.broadcast_to(error, values.shape)
    for value, bound, truth in zip(values, bounds, exact, strict=True):
        assert abs(Fraction(float(value)) - truth) <= Fraction(float(bound))


def wild(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape) * np.exp(rng.normal(0.0, 4.0, shape))


@pytest.mark.parametrize("name", [name for name in DESIGNS if "standardized" not in name])
def test_products_are_within_their_bounds_of_the_exact_ones(name: str, rng) -> None:
    matrix = small_matrix(rng, p=40)
    design, X = DESIGNS[name](matrix), as_seen(name, matrix)
    for live in (range(0), [7], range(40)):
        coef = np.zeros((40, 1))
        coef[list(live)] = wild(rng, len(live), 1)
        intercept = wild(rng, 1)
        exact = [z + Fraction(float(intercept[0])) for z in exactly(X, coef[:, 0])]
        plain = design.enclosed(coef, intercept, design.scores(coef) + intercept)
        precise = design.precise_scores(coef, intercept)
        for found in (plain, precise):
            assert_encloses(found.values[:, 0], found.error[..., 0], exact)
        assert (precise.error <= 5e-16 * (np.abs(precise.values) + np.abs(intercept))).all()
    dual = wild(rng, 14, 2)
    back, error = design.adjoint(dual), design.adjoint_error(np.abs(dual).sum(axis=0))
    precise = design.precise_adjoint(dual)
    for k in range(2):
        exact = exactly(X.T, dual[:, k])
        assert_encloses(back[:, k], error[:, k], exact)
        assert_encloses(precise.values[:, k], precise.error[:, k], exact)


@every_offset
@pytest.mark.parametrize("sparse", [False, True])
def test_precise_scores_are_those_of_the_published_model(offset: float, sparse: bool, rng) -> None:
    X = rng.standard_normal((15, 6)) + offset
    base = SparseDesign(csr_array(X)) if sparse else DenseDesign(X)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    design = StandardizedDesign(base, centre, scale)
    coef, intercept = rng.standard_normal((6, 1)), rng.standard_normal(1)
    raw, shifted = published(coef, intercept, centre, scale)
    exact = [z + Fraction(float(shifted[0])) for z in exactly(X, raw[:, 0])]
    precise = design.precise_scores(coef, intercept)
    assert_encloses(precise.values[:, 0], precise.error[:, 0], exact)
    plain = design.enclosed(coef, intercept, design.scores(coef) + intercept)
    assert_encloses(plain.values[:, 0], plain.error[..., 0], exact)


@every_offset
def test_the_published_intercept_is_exact_to_the_last_place(offset: float, rng) -> None:
    centre, scale = rng.standard_normal(6) + offset, np.exp(rng.standard_normal(6))
    coef, intercept = rng.standard_normal((6, 1)), rng.standard_normal(1)
    raw, shifted = published(coef, intercept, centre, scale)
    truth = Fraction(float(intercept[0])) - exactly(centre[None, :], raw[:, 0])[0]
    assert float(shifted[0]) == pytest.approx(float(truth), rel=3e-16)


# -- losses ---------------------------------------------------------------------------------------


def losses() -> dict[str, Callable[[np.random.Generator], Loss]]:
    def summed(kind: str, phi: MarginLoss) -> Callable[[np.random.Generator], Loss]:
        return lambda rng: SUMS[kind](phi, rng)

    sums = {
        f"{kind} {name}": summed(kind, phi) for kind in SUMS for name, phi in MARGIN_LOSSES.items()
    }
    return {**sums, **COUPLED, **COMPARISONS, **JOINT, **LEVEL_SETS, **SHIFTED}


LOSSES = losses()


@pytest.mark.parametrize("make", LOSSES.values(), ids=LOSSES.keys())
@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0])
def test_no_error_of_the_scores_changes_a_gap_by_more_than_the_growth(make, size, rng) -> None:
    loss = make(rng)
    kind = "binary" if loss.n_outputs == 1 else "multiclass"
    free = INTERCEPTS[kind]["free"]
    shape = (loss.shares.size, loss.n_outputs)
    for _ in range(10):
        scores = np.round(3 * rng.standard_normal(shape))  # kinks and ties
        scores -= loss.is_homogeneous * scores.mean()
        dual = loss.balanced(loss.value_and_gradient(rng.standard_normal(shape))[1], free)
        _, gradient = loss.value_and_gradient(scores)
        error = size * rng.random(shape)
        bound = loss.growth(scores, gradient.copy(), dual, error)
        before = loss.fenchel_young(scores, dual)
        for _ in range(10):
            moved = scores + error * np.sign(rng.standard_normal(shape))
            grown = loss.fenchel_young(moved, dual) - before
            assert grown <= bound * (1 + 1e-9) + 1e-12 * (1 + abs(before))


@pytest.mark.parametrize("make", LOSSES.values(), ids=LOSSES.keys())
def test_pessimistic_scores_have_the_largest_loss_within_an_error(make, rng) -> None:
    loss = make(rng)
    shape = (loss.shares.size, loss.n_outputs)
    scores, error = 2 * rng.standard_normal(shape), 0.3 * rng.random(shape)
    pessimistic = loss.pessimistic(scores, error)
    if pessimistic is scores:  # not known
        assert loss.is_homogeneous or not np.isinf(loss.row_curvatures).any()
        return
    assert (np.abs(pessimistic - scores) <= error * (1 + 1e-12)).all()
    for _ in range(50):
        moved = scores + error * rng.uniform(-1, 1, shape)
        assert loss.value(moved) <= loss.value(pessimistic) * (1 + 1e-12)


# -- penalties ------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES.keys())
def test_no_coefficients_of_a_level_have_a_larger_product(penalty: Penalty, rng) -> None:
    for _ in range(50):
        coef = into_domain(penalty, rng.standard_normal((4, 3)) * (rng.random((4, 1)) < 0.6))
        sizes = rng.random((4, 3)) * (rng.random((4, 1)) < 0.7)
        level = penalty.value(coef) * (1 + 1e-12)
        product = float(np.vdot(sizes, np.abs(coef)))
        assert product <= penalty.largest_product(sizes, level) * (1 + 1e-9) + 1e-300
        assert penalty.largest_product(np.zeros((4, 3)), level) == 0.0
        assert penalty.largest_product(sizes, 0.0) >= 0.0  # and no NaN


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_factors_of_one_change_nothing_of_what_is_negligible(l1_ratio: float, rng) -> None:
    X, y = rng.standard_normal((20, 40)), np.arange(20) % 2
    for weighted in ({"penalty_factor": np.ones(40)}, {"bounds": (-9.0, 9.0)}):
        settings = {"alpha": 1e-22, "l1_ratio": l1_ratio, "max_iter": 300}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            told = SquaredHingeSVC(**settings, **weighted).fit(X, y).certificate_
        assert told.converged == (told.gap <= 1e-6 * max(told.primal, told.dual))
