"""Complementary pairs of a box ``0 <= a <= u``: a and ``u - a``, with the slacks of its sides."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.losses.base import Array
from proxmargin.solvers.boundary import length_to_boundary

__all__ = ["complementarity", "idle_after", "longest", "products"]

GAP_REDUCTION = 0.9  # ratio to the smallest gap so far, below which a gap is progress


class ComplementaryPairs(Protocol):
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
    """Changes of the pairs in a full step; ``u - a`` changes by minus the change of a."""

    @property
    def dual(self) -> Array: ...
    @property
    def below(self) -> Array: ...
    @property
    def above(self) -> Array: ...


class Idle(Protocol):
    """The smallest gap, and the certificates since then."""

    @property
    def best(self) -> float: ...
    @property
    def idle(self) -> int: ...


def complementarity(at: ComplementaryPairs) -> float:
    """Sum of the products of all pairs."""
    return float(at.dual @ at.below + _tops(at.room, at.above).sum())


def products(at: ComplementaryPairs, by: Changes, step: float) -> tuple[Array, Array]:
    """Products of the lower and of the upper pairs after a step."""
    low = (at.dual + step * by.dual) * (at.below + step * by.below)
    return low, _tops(at.room - step * by.dual, at.above + step * by.above)


def longest(at: ComplementaryPairs, by: Changes) -> float:
    """The largest step length, at most one, after which nothing is negative."""
    return length_to_boundary(
        (at.dual, by.dual), (at.room, -by.dual), (at.below, by.below), (at.above, by.above)
    )


def idle_after(state: Idle, gap: Gap, expected: float, rounding: float) -> int:
    """Certificates in a row, ``gap``'s included, without progress because of rounding.

    Parameters
    ----------
    expected : float
        The complementarity, which in exact arithmetic equals the gap once the equations hold.
    rounding : float
        Complementarity over the gap, below which the gap is rounding.
    """
    ended = gap.gap > GAP_REDUCTION * state.best and expected < rounding * gap.gap
    return state.idle + 1 if ended else 0


def _tops(room: Array, above: Array) -> Array:
    """``room * above``; zero without a cap."""
    return np.multiply(room, above, out=np.zeros_like(above), where=np.isfinite(room))
