"""Losses: pointwise functions of a margin, and the sums over samples that solvers see."""

from proxmargin.losses.base import Loss
from proxmargin.losses.hinge import Hinge
from proxmargin.losses.huberized_hinge import HuberizedHinge
from proxmargin.losses.logistic import Logistic
from proxmargin.losses.margin import MarginLoss
from proxmargin.losses.margin_sum import MarginSum
from proxmargin.losses.squared_hinge import SquaredHinge
from proxmargin.losses.wrong_classes import wrong_classes

__all__ = [
    "Hinge",
    "HuberizedHinge",
    "Logistic",
    "Loss",
    "MarginLoss",
    "MarginSum",
    "SquaredHinge",
    "wrong_classes",
]
