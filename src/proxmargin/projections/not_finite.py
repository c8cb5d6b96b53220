"""What projections raise for points that are none."""

from __future__ import annotations

__all__ = ["NotFiniteError"]


class NotFiniteError(ValueError):
    """Entries are NaN or infinite: there is no nearest point.

    Solvers whose iterates diverge come to this; `proxmargin.loop.minimize` says so instead.
    """
