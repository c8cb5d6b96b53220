"""Kernels: positive semidefinite functions of two samples. The definitions are scikit-learn's."""

from proxmargin.kernels.base import Kernel
from proxmargin.kernels.functions import Custom, Linear, Polynomial, Precomputed, Rbf, Sigmoid
from proxmargin.kernels.named import named_kernel, resolve_gamma

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
