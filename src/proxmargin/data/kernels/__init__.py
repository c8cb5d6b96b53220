"""Kernels: positive semidefinite functions of two samples. The definitions are scikit-learn's."""

from proxmargin.data.kernels.base import Kernel
from proxmargin.data.kernels.functions import (
    Custom,
    Linear,
    Polynomial,
    Precomputed,
    Rbf,
    Sigmoid,
    named_kernel,
    resolve_gamma,
)

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
