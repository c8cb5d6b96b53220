"""Losses: pointwise functions of a margin, and the sums over samples that solvers see."""

from proxmargin.losses.base import Loss
from proxmargin.losses.crammer_singer import CrammerSinger
from proxmargin.losses.distance_weighted import DistanceWeighted
from proxmargin.losses.dual_form import DualForm
from proxmargin.losses.hinge import Hinge
from proxmargin.losses.huberized_hinge import HuberizedHinge
from proxmargin.losses.level_set import LevelSet
from proxmargin.losses.logistic import Logistic
from proxmargin.losses.margin import MarginLoss
from proxmargin.losses.margin_sum import MarginSum
from proxmargin.losses.minimax import MinimaxFisher, MinimaxProbability
from proxmargin.losses.multinomial import Multinomial
from proxmargin.losses.pairwise import PairwiseSquaredHinge
from proxmargin.losses.squared_hinge import SquaredHinge
from proxmargin.losses.tail_mean import TailMean
from proxmargin.losses.wrong_classes import wrong_classes

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
    "SquaredHinge",
    "TailMean",
    "wrong_classes",
]
