"""Solvers that call another solver on a smaller or an easier problem.

Working sets and screening leave features out, `two_stage` refits on a support, `relay` and `turns`
switch from one method to another, `cutting_planes` turns a budget into a sequence of prices. They
win if the cost of the inner solver is superlinear in what they leave out. Theory: Massias,
Gramfort and Salmon (2018), Ndiaye et al. (2017), Xu et al. (2015).
"""
