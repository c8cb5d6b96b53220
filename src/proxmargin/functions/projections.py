"""Nearest points of convex sets: simplices, balls, epigraphs, boxes cut by a hyperplane."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.projections import simplex as compiled
from proxmargin.compiled.projections.groups import lp_unit
from proxmargin.compiled.projections.knapsack import Knapsack, pivot, refined_point
from proxmargin.compiled.projections.simplex import project_epigraphs
from proxmargin.compiled.rounding import DOMAIN_ROUNDING, ROOT_STEPS, SUM_ROUNDING
from proxmargin.runtime.types import Array


class NotFiniteError(ValueError):
    """Entries are NaN or infinite: there is no nearest point. Solvers whose iterates diverge get
    here; `proxmargin.solvers.loop.minimize` reports divergence instead."""


def simplex_rows(rows: ArrayLike, sizes: ArrayLike) -> Array:
    """The nearest ``y_i`` to each row, (n, K), with ``y_i >= 0`` and ``sum(y_i) = sizes_i >= 0``;
    each sum has the digits of its size. It gives the prox of ``z -> size max_k z_k`` (Chierchia et
    al. 2015, Prop. 3.1). An entry of -inf becomes zero. Raises NotFiniteError: entries that are no
    numbers."""
    matrix = np.ascontiguousarray(rows, dtype=np.float64)
    wanted = np.ascontiguousarray(np.broadcast_to(sizes, matrix.shape[:1]), dtype=np.float64)
    if not np.all(np.isfinite(matrix.max(axis=1))):
        raise NotFiniteError("rows have entries that are NaN or infinite, or none that is finite")
    out = np.empty_like(matrix)
    compiled.project_rows(matrix, wanted, out)
    return out


def transport(rows: Array, row_sums: Array, column_sums: Array) -> Array:
    """The nearest non-negative matrix to ``rows``, (n, K), with these row and column sums, to
    rounding. Its rows are projections of ``rows_i + shift`` onto simplices (`column_shift`); the
    error in the column sums after Newton's method is corrected by `transport_rounded`, so that the
    result is feasible for any rows."""
    start = np.zeros(column_sums.size)
    matrix, _ = column_shift(rows, row_sums, column_sums, start)
    return transport_rounded(matrix, row_sums, column_sums)


def column_shift(
    rows: Array, row_sums: Array, column_sums: Array, start: Array, ridge: float = 0.0
) -> tuple[Array, Array]:
    """The projections of ``rows + shift`` onto simplices, and the shift (K,) for which they have
    these column sums up to rounding; without a ridge it is determined up to a constant.

    Semismooth Newton steps from ``start``, with a line search on the convex function whose gradient
    is ``column sums of the projections - column_sums + ridge shift``. Columns of sum zero are left
    out of the projections where there is no ridge: their shift would be minus infinity.
    """
    if ridge == 0:
        rows = np.where(column_sums > 0, rows, -np.inf)
    problem = compiled.Columns(
        np.ascontiguousarray(rows), row_sums, column_sums.astype(np.float64), float(ridge)
    )
    shift = compiled.column_newton(problem, start)
    matrix = np.empty_like(problem.rows)
    compiled.project_rows(problem.rows + shift, row_sums, matrix)
    return matrix, shift


def transport_rounded(matrix: Array, row_sums: Array, column_sums: Array) -> Array:
    """Correct a non-negative matrix with nearly these row and column sums to have them, to
    rounding. Columns, then rows, with too large sums are scaled down, and a matrix of rank one adds
    what is missing: Algorithm 2 of Altschuler, Weed and Rigollet (2017)."""
    columns = matrix.sum(axis=0)
    rounded = matrix * np.divide(
        column_sums, columns, out=np.ones_like(columns), where=columns > column_sums
    )
    rows = rounded.sum(axis=1)
    heavy = rows > row_sums
    rounded *= np.divide(row_sums, rows, out=np.ones_like(rows), where=heavy)[:, None]
    missing_rows = np.maximum(row_sums - rounded.sum(axis=1), 0.0)
    missing_columns = np.maximum(column_sums - rounded.sum(axis=0), 0.0)
    total = float(missing_columns.sum())
    if total > 0:
        rounded += np.outer(missing_rows, missing_columns / total)
    return rounded


def ball(point: ArrayLike, radius: float) -> Array:
    """The nearest u to ``point`` with ``|u|_2 <= radius``: ``min(1, radius / |point|) point``,
    section 4.1.4 of Ito, Takeda and Toh (2017). Norms that are too large or too small for a float
    do no harm. Raises NotFiniteError."""
    start, largest = _with_largest(point)
    if largest <= radius / math.sqrt(max(start.size, 1)):
        return start.copy()
    directions = start / largest
    norm = math.sqrt(directions @ directions)
    if norm <= radius / largest:
        return start.copy()
    return (directions / norm) * radius


def lp_ball(point: ArrayLike, radius: float, p: float) -> Array:
    """The nearest u to ``point`` with ``|u|_p <= radius``, for ``1 < p < inf``. Raises
    NotFiniteError.

    With s = max |point_i| and u = radius z sign(point), the optimality conditions are

        (radius / s) z_i + nu z_i^(p-1) = |point_i| / s,    sum z_i^p = 1,    nu >= 0.

    Each z_i is found by a monotone Newton method, nu by Newton on ``|z|_p^(1-p)``, which is nearly
    linear in nu (linear for p = 2), between bounds. Norms that are too large or too small for a
    float do no harm.
    """
    if p == 2.0:
        return ball(point, radius)
    start, largest = _with_largest(point)
    sizes = np.abs(start) / largest if largest > 0.0 else start
    if largest == 0.0 or _norm(sizes, p) <= radius / largest:
        return start.copy()
    unit = _unit(sizes, radius / largest, p)
    return np.copysign(np.minimum(radius * unit, np.abs(start)), start)


def _with_largest(point: ArrayLike) -> tuple[Array, float]:
    """The point as an array and its largest absolute entry."""
    start = np.ascontiguousarray(point, dtype=np.float64)
    largest = float(np.abs(start).max(initial=0.0))
    if not math.isfinite(largest):
        raise NotFiniteError("point has entries that are NaN or infinite; give finite ones")
    return start, largest


def _norm(sizes: Array, p: float) -> float:
    return float(np.sum(sizes**p)) ** (1.0 / p)


def _unit(sizes: Array, radius: float, p: float) -> Array:
    """z of the optimality conditions, for sizes outside the ball with the largest one equal to 1.
    The multiplier is at most the dual norm of the sizes, because ``z^(p-1) <= sizes / nu``."""
    q = p - 1.0
    low, high = 0.0, _norm(sizes, p / q)
    unit = np.empty_like(sizes)
    nu = high / (1.0 + radius)
    for _ in range(ROOT_STEPS):
        power, slope = lp_unit(sizes, radius, q, nu, unit)
        if abs(power - 1.0) <= SUM_ROUNDING or high - low <= SUM_ROUNDING * high:
            break
        low, high = (nu, high) if power > 1.0 else (low, nu)
        # g(nu) = power^(-q/p) - 1 has the derivative q power^(-q/p - 1) slope
        root = nu - math.expm1(-q / p * math.log(power)) * power ** (q / p + 1.0) / (q * slope)
        nu = root if low < root < high else 0.5 * (low + high)
    return unit / max(1.0, _norm(unit, p))


def hinge_epigraphs(rows: ArrayLike, levels: ArrayLike, codes: ArrayLike) -> tuple[Array, Array]:
    """The nearest ``(p_i, theta_i)`` to each row and level with ``h_i(p_i) <= theta_i``, (n, K) and
    (n,). ``h_i(y) = max_k y_k + [k != codes_i]``: for ``y_k = z_k - z_own`` it is the hinge of
    Crammer and Singer (Chierchia et al. 2015, Prop. 3.3). Raises NotFiniteError."""
    matrix = np.ascontiguousarray(rows, dtype=np.float64)
    heights = np.ascontiguousarray(levels, dtype=np.float64)
    own = np.ascontiguousarray(codes)
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(heights))):
        raise NotFiniteError("rows or levels have entries that are NaN or infinite")
    out, out_levels = np.empty_like(matrix), np.empty_like(heights)
    project_epigraphs(matrix, heights, own, out, out_levels)
    return out, out_levels


class BoxHyperplane:
    """One box cut by one hyperplane of a nonzero normal, for projections in many proximal steps.

    ``u_i = clip(point_i - theta normal_i, low_i, high_i)`` with theta a root of ``h(theta) =
    normal'u(theta) = total`` (Lemma 2 of Ito, Takeda and Toh (2017)). The bounds hold exactly and
    ``normal'u`` is the total to the last digits that the free entries can express: entries differ
    from the formula by its own rounding.

    After a gradient step of length s from a point of the set, theta is about s times the multiplier
    of the optimality conditions, which converges with the iterates. So ``theta / step`` of the last
    projection gives the guess for the next; the result does not depend on the guess.
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
        u, theta = nearest_in_box(problem, guess)
        self._rate = theta / step
        return u


def nearest_in_box(problem: Knapsack, guess: float | None) -> tuple[Array, float]:
    """The nearest point of a box cut by a hyperplane, and the multiplier theta of the hyperplane,
    one of many where no entry is strictly inside its bounds.

    Newton's method starts at ``guess``, such as theta of a similar point, and ends after few steps
    if few entries have a breakpoint between the two; where it does not end at theta, a breakpoint
    search (Kiwiel, 2008) follows. Raises ValueError: entries that are not numbers, ``low > high``,
    or a total that no u in the box has. A total beyond the range by rounding (1e-12, relative to
    ``sum |normal u|``) gives the end of the range.
    """
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
