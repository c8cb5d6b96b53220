"""Kernels of projections and of proximal maps of norms."""
