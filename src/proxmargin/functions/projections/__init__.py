"""Nearest points of convex sets: boxes cut by a hyperplane, and balls. Pure functions."""

from proxmargin.functions.projections.box_hyperplane import (
    BoxHyperplane,
    box_hyperplane_multiplier,
    capped_simplex,
)
from proxmargin.functions.projections.simplex import NotFiniteError, ball, lp_ball

__all__ = [
    "BoxHyperplane",
    "NotFiniteError",
    "ball",
    "box_hyperplane_multiplier",
    "capped_simplex",
    "lp_ball",
]
