"""Solvers made of solvers: each calls another on a smaller or an easier problem.

Working sets and screening leave features out, `two_stage` refits on a support, `relay` and `turns`
hand over from one method to the next, `cutting_planes` turns a budget into a sequence of prices.
They win where the inner solver's cost is superlinear in what they leave out. Theory: Massias,
Gramfort and Salmon (2018), Ndiaye et al. (2017), Xu et al. (2015).
"""
