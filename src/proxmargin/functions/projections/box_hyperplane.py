"""The nearest point of a box cut by a hyperplane, which most duals of margin models need."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.projections.knapsack import Knapsack, pivot, refined_point
from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.functions.projections.simplex import NotFiniteError

Array = NDArray[np.float64]


def box_hyperplane_multiplier(
    point: ArrayLike,
    normal: ArrayLike,
    total: float,
    low: ArrayLike,
    high: ArrayLike,
    *,
    guess: float | None = None,
) -> tuple[Array, float]:
    """The nearest point of a box cut by a hyperplane, and the multiplier of the hyperplane.

    ``u_i = clip(point_i - theta normal_i, low_i, high_i)`` with theta a root of
    ``h(theta) = normal'u(theta) = total`` (Lemma 2 of Ito, Takeda and Toh (2017)). The bounds
    hold exactly and ``normal'u`` is the total to the last digits that the free entries can
    express: entries differ from the formula by its own rounding. Entries of zero normal are
    clipped.

    Parameters
    ----------
    point : (n,), finite
    normal : (n,) or a number, finite, of any signs
    total : finite
    low, high : (n,) or numbers, low <= high; low may be -inf, high may be inf
    guess : near theta, such as theta of a similar point
        Newton's method starts there, and ends after few steps if no more than few entries have a
        breakpoint between the two; where it does not end at theta, a breakpoint search (Kiwiel,
        2008) follows.

    Returns
    -------
    u : (n,), a new array
    theta : float
        One of many where no entry is strictly inside its bounds.

    Raises
    ------
    ValueError
        For input that is not a number or of other shape, ``low > high``, or a total that no u in
        the box has. A total beyond the range by rounding (1e-12, relative to ``sum |normal u|``)
        gives the end of the range.
    """
    return _nearest(_knapsack(point, normal, total, low, high), guess)


def capped_simplex(
    point: ArrayLike,
    total: float,
    cap: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    guess: float | None = None,
) -> Array:
    """The nearest u to ``point`` with ``weights'u = total`` and ``0 <= u <= cap``.

    (22) of Ito, Takeda and Toh (2017), one class of the dual of the nu-SVM.

    Parameters
    ----------
    point : (n,), finite
    total : finite
    cap : (n,) or a number, may be inf
    weights : (n,), ones by default
    guess : as of `box_hyperplane_multiplier`, as are the errors

    Returns
    -------
    (n,), a new array
    """
    normal = 1.0 if weights is None else weights
    return box_hyperplane_multiplier(point, normal, total, 0.0, cap, guess=guess)[0]


class BoxHyperplane:
    """One box cut by one hyperplane, for projections in many proximal steps.

    After a gradient step of length s from a point of the set, theta is about s times the multiplier
    of the optimality conditions, which converges with the iterates. So ``theta / step`` of the last
    projection gives the guess for the next; the result does not depend on the guess.

    Parameters
    ----------
    normal, total, low, high
        See `box_hyperplane_multiplier`; the normal is not zero.
    """

    def __init__(self, normal: Array, total: float, low: Array, high: Array) -> None:
        sizes = _once(np.abs(normal))
        unit = float(sizes[0]) if sizes.size == 1 else 1.0  # ones are quicker
        self._normal = _once(normal / unit)
        self._total = total / unit
        self._low, self._high = _once(low), _once(high)
        self._rate: float | None = None

    def nearest(self, point: Array, step: float) -> Array:
        """The nearest point of the set to ``point``, the result of a step of length ``step``."""
        start = np.ascontiguousarray(point, dtype=np.float64)
        problem = Knapsack(start, self._normal, self._low, self._high, self._total)
        guess = None if self._rate is None else self._rate * step
        u, theta = _nearest(problem, guess)
        self._rate = theta / step
        return u


def _nearest(problem: Knapsack, guess: float | None) -> tuple[Array, float]:
    """The nearest point and theta, by Newton's method from the guess or else a search."""
    if guess is not None:
        u, theta, _, _, near, valid = refined_point(problem, float(guess))
        if near and valid:
            return u, theta
    u, theta, residual, size, _, valid = refined_point(problem, pivot(problem)[0])
    if not (valid and abs(residual) <= DOMAIN_ROUNDING * max(size, abs(problem.total))):
        _refuse(problem)
    return u, theta


def _once(values: Array) -> Array:
    """The values, or a single entry if all are equal."""
    return values[:1].copy() if np.all(values == values[0]) else values


def _knapsack(
    point: ArrayLike, normal: ArrayLike, total: float, low: ArrayLike, high: ArrayLike
) -> Knapsack:
    start = np.ascontiguousarray(point, dtype=np.float64)
    if start.ndim != 1 or start.size == 0:
        raise ValueError(f"point has shape {np.shape(point)}; give a vector of at least one entry")
    if not math.isfinite(total):
        raise ValueError(f"total={total} is no finite number")
    return Knapsack(
        start,
        _fitted("normal", normal, start.size),
        _fitted("low", low, start.size),
        _fitted("high", high, start.size),
        float(total),
    )


def _fitted(name: str, value: ArrayLike, n: int) -> Array:
    """The value as an array of n entries, or of one entry that holds for all."""
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape not in ((n,), (1,)) or (np.ndim(value) and array.size != n):
        raise ValueError(f"{name} has shape {np.shape(value)}; give a number or {n} entries")
    return array


def _refuse(problem: Knapsack) -> None:
    """Raise the reason why there is no nearest point; return if there is one."""
    for name in ("point", "normal"):
        if not np.isfinite(getattr(problem, name)).all():
            raise NotFiniteError(f"{name} has entries that are NaN or infinite; give finite ones")
    if not np.all(problem.low <= problem.high):
        raise ValueError("low <= high does not hold everywhere: an entry is crossed or NaN")
    least, most = _reach(problem, problem.normal < 0), _reach(problem, problem.normal > 0)
    if not least <= problem.total <= most:
        raise ValueError(
            f"total={problem.total:.17g} is out of reach: between the bounds low and high,"
            f" normal'u is from {least:.17g} to {most:.17g}"
        )


def _reach(problem: Knapsack, up: NDArray[np.bool_]) -> float:
    """Exactly summed ``normal'u`` for u at high where ``up``, at low elsewhere."""
    used = np.broadcast_to(problem.normal != 0, problem.point.shape)
    ends = np.broadcast_to(np.where(up, problem.high, problem.low), problem.point.shape)
    normal = np.broadcast_to(problem.normal, problem.point.shape)
    return math.fsum(normal[used] * ends[used])
