"""Kernels of losses: fused passes over scores, and dual points."""
