"""Solvers: one algorithm a file, and the table that picks one."""
