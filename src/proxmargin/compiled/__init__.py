"""Numba kernels: fused twins of array formulas, coordinate sweeps, mixed-precision products.

Nothing else in the package imports Numba. Every kernel is held to its array formula by a test.
"""
