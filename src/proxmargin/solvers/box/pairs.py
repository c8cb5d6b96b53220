"""Complementary pairs of a box ``0 <= a <= u``: a and ``u - a``, with the slacks of its sides."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.losses.base import Array
from proxmargin.solvers.boundary import length_to_boundary

__all__ = ["complementarity", "idle_after", "longest", "products"]

GAP_REDUCTION = 0.9  # a smaller gap than this times the least one is progress


class Pairs(Protocol):
    """``a``, ``u - a`` (infinite without a cap), and their slacks; (n_boxes,) each."""

    @property
    def dual(self) -> Array: ...
    @property
    def room(self) -> Array: ...
    @property
    def below(self) -> Array: ...
    @property
    def above(self) -> Array: ...


class Changes(Protocol):
    """Of a step; that of ``u - a`` is minus that of a."""

    @property
    def dual(self) -> Array: ...
    @property
    def below(self) -> Array: ...
    @property
    def above(self) -> Array: ...


class Idle(Protocol):
    """How far the gap has come."""

    @property
    def best(self) -> float: ...
    @property
    def idle(self) -> int: ...


def complementarity(at: Pairs) -> float:
    """Sum of the products of all pairs."""
    return float(at.dual @ at.below + _tops(at.room, at.above).sum())


def products(at: Pairs, by: Changes, step: float) -> tuple[Array, Array]:
    """Products of the lower and of the upper pairs after a step."""
    low = (at.dual + step * by.dual) * (at.below + step * by.below)
    return low, _tops(at.room - step * by.dual, at.above + step * by.above)


def longest(at: Pairs, by: Changes) -> float:
    """The largest step up to one after which nothing is negative."""
    return length_to_boundary(
        (at.dual, by.dual), (at.room, -by.dual), (at.below, by.below), (at.above, by.above)
    )


def idle_after(state: Idle, gap: Gap, expected: float, rounding: float) -> int:
    """Certificates in a row without progress, because of rounding, with that of ``gap``.

    Parameters
    ----------
    expected : float
        The complementary products, whose sum is the gap in exact arithmetic once the equations
        hold.
    rounding : float
        Their share of the gap below which it is rounding.
    """
    ended = gap.gap > GAP_REDUCTION * state.best and expected < rounding * gap.gap
    return state.idle + 1 if ended else 0


def _tops(room: Array, above: Array) -> Array:
    """``room * above``, zero where there is no cap."""
    return np.multiply(room, above, out=np.zeros_like(above), where=np.isfinite(room))
