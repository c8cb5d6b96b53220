"""Solvers that call another solver on an easier problem.

`relay` switches from one method to another, `cutting_planes` turns a budget into a sequence of
prices.
"""
