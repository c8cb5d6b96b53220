"""Kernels: positive semidefinite functions of two samples. The definitions are scikit-learn's."""

from proxmargin.kernels.base import Kernel
from proxmargin.kernels.custom import Custom
from proxmargin.kernels.linear import Linear
from proxmargin.kernels.named import named_kernel
from proxmargin.kernels.parameters import resolve_gamma
from proxmargin.kernels.polynomial import Polynomial
from proxmargin.kernels.precomputed import Precomputed
from proxmargin.kernels.rbf import Rbf
from proxmargin.kernels.sigmoid import Sigmoid

__all__ = [
    "Custom",
    "Kernel",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Rbf",
    "Sigmoid",
    "named_kernel",
    "resolve_gamma",
]
