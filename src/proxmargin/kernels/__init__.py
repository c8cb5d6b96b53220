"""Kernels: positive semidefinite functions of two samples. The definitions are scikit-learn's."""

from proxmargin.kernels.base import Kernel
from proxmargin.kernels.functions import Custom, Linear, Polynomial, Precomputed, Sigmoid
from proxmargin.kernels.named import named_kernel, resolve_gamma
from proxmargin.kernels.rbf import Rbf

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
