"""Losses: pointwise functions of a margin, and the sums over samples that solvers see."""

from proxmargin.losses.base import DualForm, Loss
from proxmargin.losses.classes.comparison import PairwiseSquaredHinge, wrong_classes
from proxmargin.losses.classes.multinomial import CrammerSinger, Multinomial
from proxmargin.losses.level_set import LevelSet
from proxmargin.losses.margins.hinge import Hinge, HuberizedHinge, SquaredHinge
from proxmargin.losses.margins.logistic import DistanceWeighted, Logistic
from proxmargin.losses.margins.margin import MarginLoss, Rescaled
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.losses.minimax import MinimaxFisher, MinimaxProbability
from proxmargin.losses.shifted import Shifted
from proxmargin.losses.tail_mean import TailMean

__all__ = [
    "CrammerSinger",
    "DistanceWeighted",
    "DualForm",
    "Hinge",
    "HuberizedHinge",
    "LevelSet",
    "Logistic",
    "Loss",
    "MarginLoss",
    "MarginSum",
    "MinimaxFisher",
    "MinimaxProbability",
    "Multinomial",
    "PairwiseSquaredHinge",
    "Rescaled",
    "Shifted",
    "SquaredHinge",
    "TailMean",
    "wrong_classes",
]
