"""Kernels of solvers: coordinate sweeps, Newton steps, blocks of kernel machines."""
