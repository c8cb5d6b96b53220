"""Admissible ranges of parameters on given data.

The ranges of nu and kappa, the strength above which all coefficients are zero, the least loss that
a budget can allow, and the price of an exact penalty for it.
"""
