"""Solvers: one algorithm a file, and the table of rules that chooses one."""
