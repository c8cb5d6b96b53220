"""Numba kernels: fused twins of array formulas, coordinate sweeps, mixed-precision products.

Nothing else in the package imports Numba, and nothing does where a library of the kernels was built
(`library`). Every kernel is held to its array formula by a test.
"""

__all__: list[str] = []
