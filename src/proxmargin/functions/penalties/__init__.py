"""Penalties of the coefficients, and of the intercept: one idea a file."""

from proxmargin.functions.penalties.ball import Ball
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.check import check_penalty
from proxmargin.functions.penalties.custom import CustomPenalty
from proxmargin.functions.penalties.elastic_net import ElasticNet, Pinned, Ridge
from proxmargin.functions.penalties.groups import GroupL2, GroupLinf, GroupNorm
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.penalties.partition import Groups
from proxmargin.functions.penalties.sum_to_zero import SumToZero, SumToZeroGroups
from proxmargin.functions.penalties.weighted import WeightedElasticNet

__all__ = [
    "Ball",
    "CustomPenalty",
    "ElasticNet",
    "GroupL2",
    "GroupLinf",
    "GroupNorm",
    "Groups",
    "Penalty",
    "Pinned",
    "ProxJacobian",
    "Ridge",
    "SumToZero",
    "SumToZeroGroups",
    "WeightedElasticNet",
    "check_penalty",
]
