"""Proximal Newton methods for smooth losses with l1 norms."""
