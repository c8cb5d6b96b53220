"""Quadratic programs over a box: losses with kinks and a ridge, or coefficients in a ball.

Interior points need some tens of systems of the smaller of samples and features, and a crossover
ends at the exact vertex; decomposition works on blocks of a kernel matrix and needs no system. The
first win where a system fits into memory, the second on kernels with sparse duals.
Theory: Mehrotra (1992), Ferris and Munson (2002), Fan, Chen and Lin (2005).
"""
