"""Kernels of whole regularisation paths."""
