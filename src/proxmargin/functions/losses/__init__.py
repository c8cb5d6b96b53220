"""Losses: pointwise functions of a margin, and the sums over samples that solvers see."""

from proxmargin.functions.losses.base import DualForm, Loss
from proxmargin.functions.losses.classes.comparison import PairwiseSquaredHinge, wrong_classes
from proxmargin.functions.losses.classes.multinomial import CrammerSinger, Multinomial
from proxmargin.functions.losses.margins.hinge import Hinge, HuberizedHinge, SquaredHinge
from proxmargin.functions.losses.margins.logistic import DistanceWeighted, Logistic
from proxmargin.functions.losses.margins.margin import MarginLoss, Rescaled
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.minimax import MinimaxFisher, MinimaxProbability
from proxmargin.functions.losses.shifted import LevelSet, Shifted
from proxmargin.functions.losses.tail_mean import TailMean

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
