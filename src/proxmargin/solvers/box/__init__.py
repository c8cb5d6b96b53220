"""Quadratic programs over a box: losses with kinks and a ridge, or coefficients in a ball.

Interior points take some tens of linear systems over the samples or features, whichever are fewer,
and a crossover ends at the exact vertex; decomposition works on blocks of a kernel matrix and needs
no large system. The first win if a system fits into memory, the second for kernels with sparse
duals.
Theory: Mehrotra (1992), Ferris and Munson (2002), Fan, Chen and Lin (2005).
"""
