"""Nearest points of convex sets: boxes cut by a hyperplane, and balls. Pure functions."""

from proxmargin.projections.balls import ball, lp_ball
from proxmargin.projections.box_hyperplane import (
    METHODS,
    BoxHyperplane,
    box_hyperplane,
    box_hyperplane_multiplier,
    capped_simplex,
)
from proxmargin.projections.simplex import NotFiniteError

__all__ = [
    "METHODS",
    "BoxHyperplane",
    "NotFiniteError",
    "ball",
    "box_hyperplane",
    "box_hyperplane_multiplier",
    "capped_simplex",
    "lp_ball",
]
