"""Hinges with polyhedral norms as linear programs, of some rows and some columns.

Row and column generation keeps the program small, HiGHS solves it by the simplex method from the
last basis, and a basis proves its optimum to rounding. Wins where few hinges are active: few
samples, or sparse data with few violated ones; the least losses and critical strengths of paths are
such programs too. Theory: Dantzig and Wolfe (1960), Dedieu, Mazumder and Wang (2022).
"""
