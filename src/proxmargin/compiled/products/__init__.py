"""Kernels of products with data, and sums in twice the working precision."""
