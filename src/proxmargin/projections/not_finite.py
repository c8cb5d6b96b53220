"""The error that projections raise for entries that are NaN or infinite."""

from __future__ import annotations

__all__ = ["NotFiniteError"]


class NotFiniteError(ValueError):
    """Entries are NaN or infinite: there is no nearest point.

    Solvers whose iterates diverge get here; `proxmargin.loop.minimize` reports divergence instead.
    """
