"""Hinges with polyhedral norms as linear programs, of some rows and some columns.

Row and column generation keeps the program small, HiGHS solves it by the simplex method from the
last basis, and an optimal basis proves the optimum up to rounding. They win if few hinges are
active: few samples, or sparse data with few violations. The least loss and the critical strength of
a path are such programs too. Theory: Dantzig and Wolfe (1960), Dedieu, Mazumder and Wang (2022).
"""
