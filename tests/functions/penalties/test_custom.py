"""Penalties of one's own: what follows from their methods, and what is checked of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxmargin.functions.penalties.custom import OwnPenalty
from proxmargin.penalties import CustomPenalty, ElasticNet, Ridge, SumToZero, check_penalty
from tests.drawn import drawn_arrays
from tests.examples import example
from tests.unchanged import unchanged

EXAMPLES = example("huber_penalty")
SHAPE = (4, 3)


@dataclass(frozen=True)
class L1(CustomPenalty):
    """The l1 norm, with as many declarations as the test asks for."""

    l1: float = 0.5

    def value(self, coef: Any) -> float:
        return self.l1 * np.abs(coef).sum()

    def prox(self, coef: Any, step: Any) -> Any:
        return np.sign(coef) * np.maximum(np.abs(coef) - step * self.l1, 0.0)

    def dual_norm(self, dual: Any) -> float:
        return np.abs(dual).max() / self.l1


@dataclass(frozen=True)
class Net(CustomPenalty):
    """An elastic net by its conjugate, which is finite everywhere."""

    l1: float = 0.5
    l2: float = 0.3

    def value(self, coef: Any) -> float:
        return self.l1 * np.abs(coef).sum() + 0.5 * self.l2 * np.sum(coef**2)

    def prox(self, coef: Any, step: Any) -> Any:
        return L1(self.l1).prox(coef, step) / (1.0 + step * self.l2)

    def conjugate(self, dual: Any) -> float:
        return np.sum(np.maximum(np.abs(dual) - self.l1, 0.0) ** 2) / (2.0 * self.l2)


@dataclass(frozen=True)
class Centred(CustomPenalty):
    """A ridge of rows that sum to zero."""

    l2: float = 0.1

    sums_to_zero = True

    def value(self, coef: Any) -> float:
        return 0.5 * self.l2 * np.sum(coef**2)

    def prox(self, coef: Any, step: Any) -> Any:
        return (coef - coef.mean(axis=1, keepdims=True)) / (1.0 + step * self.l2)

    def conjugate(self, dual: Any) -> float:
        return np.sum((dual - dual.mean(axis=1, keepdims=True)) ** 2) / (2.0 * self.l2)


@dataclass(frozen=True)
class Positive(CustomPenalty):
    """A norm of coefficients that are not negative: neither separable by declaration nor even."""

    l1: float = 0.4

    def value(self, coef: Any) -> float:
        return self.l1 * coef.sum() if np.all(coef >= 0) else np.inf

    def prox(self, coef: Any, step: Any) -> Any:
        return np.maximum(coef - step * self.l1, 0.0)

    def conjugate(self, dual: Any) -> float:
        return 0.0 if np.all(dual <= self.l1) else np.inf


class Declared(L1):
    separable = True


class Even(L1):
    sign_invariant = True


class DeclaredNet(Net):
    separable = True


class EvenNet(Net):
    sign_invariant = True


HUBER = EXAMPLES.HuberPenalty(0.4, 0.7)  # strength and width, in units of the coefficients
SORTED = EXAMPLES.SortedL1(0.8, 0.1)  # first and last strength
OWN: dict[str, Any] = {
    "huber": HUBER,
    "sorted l1": SORTED,
    "l1": L1(),
    "l1, separable": Declared(),
    "l1, invariant": Even(),
    "net": Net(),
    "net, separable": DeclaredNet(),
    "net, invariant": EvenNet(),
    "sums to zero": Centred(),
    "positive": Positive(),
}
every = pytest.mark.parametrize("own", OWN.values(), ids=OWN.keys())
points, steps = drawn_arrays(SHAPE, -20.0, 20.0), st.floats(1e-2, 1e2)


def whole(own: CustomPenalty) -> OwnPenalty:
    return OwnPenalty(own, SHAPE)


def feasible(own: CustomPenalty, coef: np.ndarray) -> np.ndarray:
    """A point at which the value is finite."""
    return whole(own).into_domain(coef)


def in_domain(own: CustomPenalty, dual: np.ndarray) -> np.ndarray:
    return whole(own).domain_scale(dual) * dual


# -- what follows ---------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@every
def test_it_keeps_its_laws(own: CustomPenalty) -> None:
    check_penalty(own, n_features=6, n_outputs=3)
    if not own.sums_to_zero:
        check_penalty(own, n_features=5)
        check_penalty(own, n_features=1)


@every
@given(v=points, step=steps)
def test_the_prox_and_its_subgradient_close_fenchel_young(own: Any, v, step: float) -> None:
    penalty = whole(own)
    u = penalty.prox(v, step)
    dual = in_domain(own, (v - u) / step)
    terms = penalty.fenchel_young(u, dual)
    size = 1 + np.abs(v).max() / step
    assert np.all(terms >= 0)
    assert terms.sum() <= 1e-11 * size * (1 + np.abs(u).max()) * (1 + 1 / step)


@every
@given(v=points, w=points)
def test_fenchel_young_terms_bound_the_exact_sum(own: Any, v, w) -> None:
    penalty, coef, dual = whole(own), feasible(own, w), in_domain(own, v)
    terms = penalty.fenchel_young(coef, dual)
    assert terms.shape == (SHAPE[0],)
    longer = [np.asarray(each, dtype=np.longdouble) for each in (coef, dual)]
    plain = penalty.own.value(longer[0]) - np.sum(longer[0] * longer[1])
    plain += 0 if own.has_dual_norm else own.conjugate(longer[1])
    assert terms.sum() >= plain
    assert terms.sum() <= plain + 1e-12 * (1 + np.abs(coef).sum() * np.abs(dual).max())


@every
@given(dual=points)
def test_the_domain_scale_leads_into_the_domain_and_no_further_is_possible(own: Any, dual) -> None:
    penalty = whole(own)
    factor = penalty.domain_scale(dual)
    assert 0 < factor <= 1
    assert own.has_dual_norm or own.conjugate(factor * dual) < np.inf
    if own.has_dual_norm:
        assert own.dual_norm(factor * dual) <= 1.0
    if factor < 1:
        assert penalty.conjugate(factor * (1 + 1e-12) * dual) == np.inf


def test_tiny_factors_into_the_domain_are_as_exact() -> None:
    for own in (HUBER, SORTED, L1()):
        dual = np.full(SHAPE, 1.0)
        near, far = (whole(own).domain_scale(size * dual) * size for size in (1.0, 1e40))
        assert far == pytest.approx(near, rel=1e-12)


@every
@given(sizes=drawn_arrays(SHAPE, 0.0, 3.0), w=points, shrink=st.floats(1e-6, 1.0))
def test_products_within_a_level_are_bounded(own: Any, sizes, w, shrink: float) -> None:
    penalty, coef = whole(own), feasible(own, shrink * w)
    level = penalty.value(coef)
    bound = penalty.largest_product(sizes, level)
    assert bound >= float(np.vdot(sizes, np.abs(coef))) * (1 - 1e-12)


def test_bounds_of_products_are_those_of_the_built_in_penalties_up_to_a_factor() -> None:
    sizes = np.linspace(0.1, 1.0, 12).reshape(SHAPE)
    for make in (L1, Declared, Even):
        ratio = whole(make()).largest_product(sizes, 0.3)
        ratio /= ElasticNet(0.5, 0.0).largest_product(sizes, 0.3)
        assert 1 - 1e-9 <= ratio <= 12
        assert whole(make()).is_definite(SHAPE)


@pytest.mark.parametrize(
    ("own", "same"),
    [
        (L1(), ElasticNet(0.5, 0.0)),
        (Net(), ElasticNet(0.5, 0.3)),
        (Centred(), SumToZero(Ridge(0.1))),
    ],
    ids=["l1", "net", "sums to zero"],
)
@given(v=points, w=points)
def test_it_agrees_with_the_built_in_penalty(own: Any, same: Any, v, w) -> None:
    penalty = whole(own)
    coef, dual = penalty.prox(w, 1.0), in_domain(own, v)
    assert penalty.value(coef) == pytest.approx(same.value(coef), rel=1e-12)
    assert penalty.domain_scale(v) == pytest.approx(same.domain_scale(v), rel=1e-12)
    size = 1 + np.abs(coef).max() + np.abs(dual).max()
    assert penalty.fenchel_young(coef, dual).sum() == pytest.approx(
        same.fenchel_young(coef, dual).sum(), abs=1e-11 * size**2
    )
    np.testing.assert_allclose(
        penalty.violations(coef, v).max(), same.violations(coef, v).max(), atol=1e-6 * (1 + size)
    )


# -- what is refused ------------------------------------------------------------------------------


def test_a_penalty_without_a_conjugate_says_what_is_missing() -> None:
    class Bare(CustomPenalty):
        value, prox = L1.value, L1.prox
        l1 = 0.5

    for call in (lambda: whole(Bare()), lambda: check_penalty(Bare())):
        with pytest.raises(ValueError, match=r"neither conjugate\(dual\) nor.*dual_norm\(dual\)"):
            call()
    with pytest.raises(TypeError, match="a certificate needs one of them"):
        Bare().conjugate(np.ones(SHAPE))


def test_a_penalty_without_a_prox_is_no_penalty() -> None:
    class Half(CustomPenalty):
        value = L1.value

    with pytest.raises(TypeError, match="prox"):
        Half()  # type: ignore[abstract]


@dataclass(frozen=True)
class Answers(L1):
    """An l1 norm one of whose methods returns something else."""

    name: str = ""
    answer: Any = None

    def value(self, coef: Any) -> Any:
        return self.answer if self.name == "value" else super().value(coef)

    def prox(self, coef: Any, step: Any) -> Any:
        return self.answer if self.name == "prox" else super().prox(coef, step)

    def dual_norm(self, dual: Any) -> Any:
        return self.answer if self.name == "dual_norm" else super().dual_norm(dual)


@pytest.mark.parametrize(
    ("name", "answer", "text"),
    [
        ("value", -1.0, "value must return a number >= 0, got -1"),
        ("value", np.nan, "value must return a number >= 0, got nan"),
        ("value", np.ones(3), "value must return a number, got array"),
        ("value", None, "value must return a number, got None"),
        ("value", 2.0, r"value\(coef\) must be 0 at zero"),
        ("prox", np.ones(4), r"shape of coef, \(6, 1\), got float64 of shape \(4,\)"),
        ("prox", None, "prox.*got object"),
        ("prox", np.full((6, 1), np.nan), r"prox\(coef, step\) must return finite numbers"),
        ("dual_norm", np.nan, "dual_norm must return a number >= 0, got nan"),
    ],
)
def test_what_a_method_may_not_return_is_named(name: str, answer: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        check_penalty(Answers(name=name, answer=answer))


def changed(base: type, **methods: Any) -> Any:
    """An object of a subclass with other methods."""
    return type("Wrong" + base.__name__, (base,), methods)()


@pytest.mark.parametrize(
    ("own", "law"),
    [
        (changed(L1, prox=lambda self, w, t: L1(0.45).prox(w, t)), "prox.*no minimiser"),
        (changed(L1, prox=lambda self, w, t: w), "prox.*no minimiser"),
        (
            changed(EXAMPLES.SortedL1, prox=lambda self, w, t: L1(self.first).prox(w, t)),
            "prox.*no minimiser",
        ),
        (changed(Net, conjugate=lambda self, v: 0.9 * Net().conjugate(v)), "conjugate.*too small"),
        (changed(Net, conjugate=lambda self, v: 1.1 * Net().conjugate(v)), "conjugate.*too large"),
        (changed(Net, conjugate=lambda self, v: L1().conjugate(v)), "outside of the domain"),
        (changed(L1, dual_norm=lambda self, v: 1.01 * L1().dual_norm(v)), "outside of the domain"),
        (changed(L1, dual_norm=lambda self, v: 0.99 * L1().dual_norm(v)), "exceeds value"),
        (changed(L1, dual_norm=lambda self, v: 2 * np.sqrt(np.abs(v).max())), "dual_norm"),
        (changed(L1, value=lambda self, w: np.sqrt(np.abs(w)).sum()), "not convex"),
        (changed(EXAMPLES.SortedL1, separable=True), "separable"),
        (changed(Positive, sign_invariant=True), "sign_invariant"),
    ],
)
def test_a_broken_law_is_named_with_the_point(own: Any, law: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s)breaks a law: .*{law}.*\. At .* = "):
        check_penalty(own)


def test_a_penalty_that_leaves_coefficients_free_is_refused() -> None:
    class Variation(CustomPenalty):
        """The total variation, which no constant vector has."""

        value = lambda self, coef: np.abs(np.diff(coef, axis=0)).sum()  # noqa: E731
        prox = lambda self, coef, step: coef  # noqa: E731
        conjugate = lambda self, dual: 0.0 if np.abs(dual).max() == 0 else np.inf  # noqa: E731

    with pytest.raises(ValueError, match=r"does not bound every coefficient.*add a ridge"):
        check_penalty(Variation())


def test_rows_of_a_prox_that_do_not_sum_to_zero_are_refused() -> None:
    own = changed(Centred, prox=lambda self, w, t: w / (1 + t * self.l2))
    with pytest.raises(ValueError, match=r"rows of prox.*sum to zero"):
        check_penalty(own, n_outputs=3)


def test_rows_of_one_column_cannot_sum_to_zero() -> None:
    with pytest.raises(ValueError, match="for more than two classes"):
        check_penalty(Centred(), n_outputs=1)


@pytest.mark.parametrize("name", ["n_features", "n_outputs"])
def test_shapes_to_check_are_at_least_one(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an integer >= 1"):
        check_penalty(L1(), **{name: 0})
    with pytest.raises(ValueError, match="must be a CustomPenalty"):
        check_penalty(Ridge(1.0))  # type: ignore[arg-type]


def test_methods_may_overwrite_what_they_are_given(rng) -> None:
    class Hasty(L1):
        def prox(self, coef: Any, step: Any) -> Any:
            coef[:] = super().prox(coef, step)
            return coef

        def value(self, coef: Any) -> float:
            return self.l1 * np.abs(coef, out=coef).sum()

    at = rng.standard_normal(SHAPE)
    with unchanged(at):
        whole(Hasty()).value(at)
        found = whole(Hasty()).prox(at, 0.5)
    np.testing.assert_array_equal(found, L1().prox(at, 0.5))


def test_one_step_a_feature_needs_a_separable_penalty() -> None:
    each = np.array([[0.1], [1.0], [2.0], [3.0]])
    with pytest.raises(TypeError, match="one step a feature"):
        whole(L1()).prox(np.ones(SHAPE), each)
    found = whole(Declared()).prox(np.ones(SHAPE), each)
    np.testing.assert_array_equal(found, ElasticNet(0.5, 0.0).prox(np.ones(SHAPE), each))
    with pytest.raises(TypeError, match="no restriction"):
        whole(L1()).restricted(np.arange(2))


def test_a_conjugate_that_forgets_its_domain_is_found() -> None:
    class Endless(EXAMPLES.HuberPenalty):
        """The conjugate of Huber's function, without the bound on the slopes."""

        def conjugate(self, dual: Any) -> float:
            return self.width * np.sum(dual**2) / (2 * self.strength)

    with pytest.raises(ValueError, match="inf outside of its domain"):
        check_penalty(Endless())
