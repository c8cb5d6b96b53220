"""Penalties of the coefficients, and of the intercept: one idea a file."""

from proxmargin.penalties.ball import Ball
from proxmargin.penalties.base import Penalty
from proxmargin.penalties.check import check_penalty
from proxmargin.penalties.custom import CustomPenalty
from proxmargin.penalties.elastic_net import ElasticNet, Pinned, Ridge
from proxmargin.penalties.groups import GroupL2, GroupLinf, GroupNorm
from proxmargin.penalties.jacobian import ProxJacobian
from proxmargin.penalties.partition import Groups
from proxmargin.penalties.sum_to_zero import SumToZero, SumToZeroGroups
from proxmargin.penalties.weighted import WeightedElasticNet

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
