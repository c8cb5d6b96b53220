"""Nearest points of balls around the origin, and of the epigraphs of the multiclass hinge."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.projections.epigraphs import project_epigraphs
from proxmargin.compiled.projections.lp_ball import lp_unit
from proxmargin.projections.simplex import NotFiniteError
from proxmargin.rounding import ROOT_STEPS, SUM_ROUNDING

__all__ = ["ball", "hinge_epigraphs", "lp_ball"]

Array = NDArray[np.float64]


def ball(point: ArrayLike, radius: float) -> Array:
    """The nearest u to ``point`` with ``|u|_2 <= radius``: ``min(1, radius / |point|) point``.

    Section 4.1.4 of Ito, Takeda and Toh (2017). Norms that are too large or too small for a
    float do no harm.

    Parameters
    ----------
    point : (n,), finite
    radius : >= 0, may be inf

    Returns
    -------
    (n,), a new array

    Raises
    ------
    ValueError
        For entries that are not finite, or a radius that is negative or NaN.
    """
    start, largest = _checked(point, radius)
    if largest <= radius / math.sqrt(max(start.size, 1)):
        return start.copy()
    directions = start / largest
    norm = math.sqrt(directions @ directions)
    if norm <= radius / largest:
        return start.copy()
    return (directions / norm) * radius


def lp_ball(point: ArrayLike, radius: float, p: float) -> Array:
    """The nearest u to ``point`` with ``|u|_p <= radius``, for ``1 < p < inf``.

    With s = max |point_i| and u = radius z sign(point), the optimality conditions are

        (radius / s) z_i + nu z_i^(p-1) = |point_i| / s,    sum z_i^p = 1,    nu >= 0.

    Each z_i is found by a monotone Newton method, nu by Newton on ``|z|_p^(1-p)``, which is
    nearly linear in nu (linear for p = 2), between bounds. Norms that are too large or too small
    for a float do no harm.

    Parameters
    ----------
    point : (n,), finite
    radius : >= 0, may be inf
    p : the exponent of the norm; 2 is `ball`

    Returns
    -------
    (n,), a new array

    Raises
    ------
    ValueError
        For entries that are not finite, a radius that is negative or NaN, or p outside (1, inf).
    """
    if not 1.0 < p < math.inf:
        raise ValueError(f"p={p} is outside (1, inf)")
    if p == 2.0:
        return ball(point, radius)
    start, largest = _checked(point, radius)
    sizes = np.abs(start) / largest if largest > 0.0 else start
    if largest == 0.0 or _norm(sizes, p) <= radius / largest:
        return start.copy()
    unit = _unit(sizes, radius / largest, p)
    return np.copysign(np.minimum(radius * unit, np.abs(start)), start)


def _checked(point: ArrayLike, radius: float) -> tuple[Array, float]:
    """The point as an array and its largest absolute entry."""
    start = np.ascontiguousarray(point, dtype=np.float64)
    if start.ndim != 1:
        raise ValueError(f"point has shape {start.shape}; give a vector")
    if not radius >= 0.0:
        raise ValueError(f"radius={radius} is not a number >= 0")
    largest = float(np.abs(start).max(initial=0.0))
    if not math.isfinite(largest):
        raise NotFiniteError("point has entries that are NaN or infinite; give finite ones")
    return start, largest


def _norm(sizes: Array, p: float) -> float:
    return float(np.sum(sizes**p)) ** (1.0 / p)


def _unit(sizes: Array, radius: float, p: float) -> Array:
    """z of the optimality conditions, for sizes outside the ball with the largest one equal to 1.

    The multiplier is at most the dual norm of the sizes, because ``z^(p-1) <= sizes / nu``.
    """
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
    """The nearest ``(p_i, theta_i)`` to each row and level with ``h_i(p_i) <= theta_i``.

    ``h_i(y) = max_k y_k + [k != codes_i]``: for ``y_k = z_k - z_own`` it is the hinge of Crammer
    and Singer (Chierchia et al. 2015, Prop. 3.3).

    Parameters
    ----------
    rows : (n, K), finite
    levels : (n,), finite
    codes : (n,) integers in [0, K)

    Returns
    -------
    rows : (n, K)
    levels : (n,)
        New arrays.

    Raises
    ------
    ValueError
        For other shapes, classes that do not exist, or entries that are not finite.
    """
    matrix = np.ascontiguousarray(rows, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(f"rows have shape {np.shape(rows)}; give a matrix with columns")
    heights = np.ascontiguousarray(levels, dtype=np.float64)
    own = np.ascontiguousarray(codes)
    if heights.shape != matrix.shape[:1] or own.shape != matrix.shape[:1]:
        raise ValueError(
            f"levels and codes have shapes {heights.shape} and {own.shape}; "
            f"give one of each a row, ({matrix.shape[0]},)"
        )
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(heights))):
        raise ValueError("rows and levels must be finite numbers")
    if own.dtype.kind not in "iu" or (
        own.size and not 0 <= own.min() <= own.max() < matrix.shape[1]
    ):
        raise ValueError(f"codes must be integers >= 0 and below {matrix.shape[1]}")
    out, out_levels = np.empty_like(matrix), np.empty_like(heights)
    project_epigraphs(matrix, heights, own, out, out_levels)
    return out, out_levels
