"""Whether a penalty of one's own keeps the laws that solvers and certificates rest on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from proxmargin.functions.penalties.base import Step
from proxmargin.functions.penalties.custom import CustomPenalty, OwnPenalty
from proxmargin.runtime.types import Array

TOLERANCE = 1e-9  # of a law, relative to its terms
LOOSE = 1e-6  # the same for equalities that hold at an exact prox only
STEPS = (0.05, 1.0, 8.0)  # of the prox


class _Pair(NamedTuple):
    """A point, the step of its prox, and the prox."""

    at: Array
    step: Step
    prox: Array

    @property
    def dual(self) -> Array:
        """A subgradient at the prox, if that is right."""
        return (self.at - self.prox) / self.step


def check_penalty(
    penalty: CustomPenalty, n_features: int = 6, n_outputs: int = 1, random_state: int = 0
) -> None:
    """Test the laws of a penalty at random points; raise where it breaks one.

    The laws are: a value that is zero at zero, and convex; a prox whose point is no worse than
    points around it; the inequality of Fenchel and Young, ``P(u) + P*(v) >= <u, v>``, with equality
    at ``u = prox(z, step)``, ``v = (z - u) / step``; what the class says of itself (`separable`,
    `sign_invariant`, `sums_to_zero`); and for norms that value and dual norm are homogeneous.

    Random points find mistakes in a formula. They prove nothing, and certificates rest on `value`
    and on `conjugate` or `dual_norm` being right.

    Parameters
    ----------
    penalty : CustomPenalty
    n_features, n_outputs : int >= 1
        Shape of the coefficients: one output for two classes, and for one-vs-rest.
    random_state : int

    Raises
    ------
    ValueError
        A method is missing, returns something of the wrong kind, or breaks a law; the message says
        which, and at which point.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from proxmargin.penalties import CustomPenalty, check_penalty
    >>> @dataclass(frozen=True)
    ... class Squares(CustomPenalty):
    ...     l2: float = 0.1
    ...
    ...     def value(self, coef):
    ...         return 0.5 * self.l2 * np.sum(coef**2)
    ...
    ...     def prox(self, coef, step):
    ...         return coef / (1.0 + step * self.l2)
    ...
    ...     def conjugate(self, dual):
    ...         return 0.5 * np.sum(dual**2) / self.l2
    >>> check_penalty(Squares())
    """
    if not isinstance(penalty, CustomPenalty):
        raise ValueError(f"penalty must be a CustomPenalty object, got {penalty!r}")
    for name, count in (("n_features", n_features), ("n_outputs", n_outputs)):
        if not (isinstance(count, int | np.integer) and count >= 1):
            raise ValueError(f"{name} must be an integer >= 1, got {count!r}")
    whole = OwnPenalty(penalty, (int(n_features), int(n_outputs)))
    rng = np.random.default_rng(random_state)
    points = _points(whole, rng)
    inside = [_feasible(whole, point) for point in points]
    _check_declared(whole, inside)
    _check_convex(whole, inside)
    pairs = list(_pairs(whole, points, rng))
    _check_prox(whole, pairs, rng)
    _check_conjugate(whole, pairs)
    _check_domain(whole, points)
    if penalty.has_dual_norm:
        _check_norm(whole, inside)


def _points(whole: OwnPenalty, rng: np.random.Generator) -> list[Array]:
    """Dense and sparse points, some with equal entries."""
    found = []
    for scale in (0.03, 0.3, 1.0, 3.0, 30.0):
        dense = scale * rng.standard_normal(whole.shape)
        found += [dense, dense * (rng.random(whole.shape) < 0.5), scale * np.sign(dense)]
    return found


def _feasible(whole: OwnPenalty, point: Array) -> Array:
    """The point, with rows that sum to zero where the penalty asks for that."""
    return point - point.mean(axis=1, keepdims=True) if whole.sums_to_zero else point


def _pairs(whole: OwnPenalty, points: list[Array], rng: np.random.Generator) -> Iterator[_Pair]:
    for point in points:
        for step in STEPS:
            yield _Pair(point, step, whole.prox(point, step))
        if whole.takes_steps and len(point) > 1:
            steps = rng.uniform(STEPS[0], STEPS[-1], (len(point), 1))
            yield _Pair(point, steps, whole.prox(point, steps))


def _check_declared(whole: OwnPenalty, points: list[Array]) -> None:
    for point in points:
        value = whole.value(point)
        if whole.own.sign_invariant and _differ(value, whole.value(np.abs(point))):
            _broken(whole, "sign_invariant: value(coef) depends on the signs", coef=point)
        if whole.own.separable and value < np.inf:
            parts = 0.0
            for entry in np.ndindex(*point.shape):
                alone = np.zeros_like(point)
                alone[entry] = point[entry]
                parts += whole.value(alone)
            if _differ(value, parts):
                text = "separable: value(coef) is not the sum of the values of single coefficients"
                _broken(whole, text, coef=point)


def _check_convex(whole: OwnPenalty, points: list[Array]) -> None:
    for first, second in zip(points, points[1:] + points[:1], strict=True):
        ends = whole.value(first), whole.value(second)
        for share in (0.5, 0.9):
            between = whole.value(share * first + (1.0 - share) * second)
            line = share * ends[0] + (1.0 - share) * ends[1]
            if between > line + TOLERANCE * (1.0 + abs(line)):
                text = f"value(coef) is not convex: {between:.6g} > {line:.6g} between two points"
                _broken(whole, text, first=first, second=second, share=share)


def _check_prox(whole: OwnPenalty, pairs: list[_Pair], rng: np.random.Generator) -> None:
    for pair in pairs:

        def objective(u: Array, pair: _Pair = pair) -> float:
            return whole.value(u) + float(np.sum((u - pair.at) ** 2 / (2.0 * pair.step)))

        here = objective(pair.prox)
        for other in (_feasible(whole, point) for point in _around(pair, rng)):
            there = objective(other)
            if not here <= there + TOLERANCE * (1.0 + abs(there)) * float(np.abs(pair.at).max()):
                text = (
                    "prox(coef, step) is no minimiser of value(u) + |u - coef|^2 / (2 step): "
                    f"{here:.9g} there, {there:.9g} at another u"
                )
                _broken(whole, text, coef=pair.at, step=pair.step, prox=pair.prox, u=other)


def _around(pair: _Pair, rng: np.random.Generator) -> Iterator[Array]:
    """Points near and far from a prox: towards zero and the argument, single entries, random."""
    u, size = pair.prox, float(np.abs(pair.at).max())
    entries = rng.permutation(u.size)[:20]
    for share in (1e-4, 1e-2, 0.3):  # over the largest entry
        yield u + share * (pair.at - u)
        yield u - share * (pair.at - u)
        yield (1.0 - share) * u
        yield u + share * size * rng.standard_normal(u.shape)
        for entry in entries:
            for sign in (1.0, -1.0):
                moved = u.copy()
                moved.flat[entry] += sign * share * size
                yield moved


def _check_conjugate(whole: OwnPenalty, pairs: list[_Pair]) -> None:
    for k, pair in enumerate(pairs):
        dual = (1.0 - TOLERANCE) * pair.dual  # inside the domain, whatever its rounding
        if whole.conjugate(dual) == np.inf:
            text = "has a subgradient of the value outside of the domain"
            _broken(whole, f"{_named(whole)} {text}", dual=dual, coef=pair.prox)
        for j in (0, 1, 5, 11):
            _check_bound(whole, pairs[(k + j) % len(pairs)].prox, dual)
        total, product, size = _terms(whole, pair.prox, dual)
        if total > product + LOOSE * size + TOLERANCE * TOLERANCE:
            text = (
                f"{_named(whole)} is too large, or prox is not exact: value + conjugate = "
                f"{total:.6g}, not <coef, dual> = {product:.6g}, at a prox and its dual"
            )
            _broken(whole, text, dual=dual, coef=pair.prox)


def _check_domain(whole: OwnPenalty, points: list[Array]) -> None:
    """The inequality of Fenchel and Young at any dual points, and far along their directions. A
    conjugate that is finite outside of its domain is too small there: ``<u, dual> - value(u)``,
    which it is to bound, grows along ``u = prox(t dual, t)`` with t."""
    for dual in points:
        for far in (1.0, 1e2, 1e4) if whole.conjugate(dual) < np.inf else ():
            _check_bound(whole, whole.prox(far * dual, far), dual)


def _check_bound(whole: OwnPenalty, u: Array, dual: Array) -> None:
    """Raise where the inequality of Fenchel and Young does not hold."""
    total, product, size = _terms(whole, u, dual)
    if total < product - TOLERANCE * size:
        text = (
            f"{_named(whole)} is too small: value + conjugate = {total:.9g} is less than "
            f"<coef, dual> = {product:.9g}; it is to be inf outside of its domain"
        )
        _broken(whole, text, dual=dual, coef=u)


def _terms(whole: OwnPenalty, u: Array, dual: Array) -> tuple[float, float, float]:
    """``P(u) + P*(dual)``, ``<u, dual>``, and the size of what is summed in both."""
    total = whole.value(u) + whole.conjugate(dual)
    return total, float(np.vdot(u, dual)), total + float(np.vdot(np.abs(u), np.abs(dual)))


def _named(whole: OwnPenalty) -> str:
    return "dual_norm(dual)" if whole.own.has_dual_norm else "conjugate(dual)"


def _check_norm(whole: OwnPenalty, points: list[Array]) -> None:
    for point in points:
        if _differ(whole.value(2.0 * point), 2.0 * whole.value(point)):
            _broken(whole, "value(2 coef) is not 2 value(coef), as for a norm", coef=point)
        if _differ(whole.dual_norm(2.0 * point), 2.0 * whole.dual_norm(point)):
            _broken(whole, "dual_norm(2 dual) is not 2 dual_norm(dual)", dual=point)
        if whole.value(point) * whole.dual_norm(point) < np.vdot(point, point) * (1.0 - TOLERANCE):
            _broken(whole, "<coef, dual> exceeds value(coef) dual_norm(dual)", coef=point)


def _differ(first: float, second: float) -> bool:
    if not np.isfinite([first, second]).all():
        return first != second
    return abs(first - second) > TOLERANCE * (first + second)


def _broken(whole: OwnPenalty, law: str, **where: Array | float) -> None:
    """Raise ValueError with the law and the point."""
    told = "; ".join(
        f"{name} = {np.array2string(np.asarray(at), precision=6, threshold=20)}"
        for name, at in where.items()
    )
    raise ValueError(f"{whole.own!r} breaks a law: {law}. At {told}")
