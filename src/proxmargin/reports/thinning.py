"""Long polylines with fewer points and the same shape."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

__all__ = ["thinned"]

Array = NDArray[np.float64]


def thinned(x: Array, y: Array, limit: int) -> NDArray[np.intp]:
    """Indices of at most ``limit`` points of a polyline, its ends among them.

    The point farthest from the line drawn so far is added again and again (Ramer 1972; Douglas and
    Peucker 1973), the worst place first.
    """
    # no limit of points: collinear ones are dropped even where all would fit
    chosen = [0, x.size - 1] if x.size > 1 else [0][: x.size]
    waiting: list[tuple[float, int, int, int]] = []
    _push(waiting, x, y, 0, x.size - 1)
    while waiting and len(chosen) < limit:
        _, start, middle, end = heappop(waiting)
        chosen.append(middle)
        _push(waiting, x, y, start, middle)
        _push(waiting, x, y, middle, end)
    return np.sort(np.array(chosen, dtype=np.intp))


def _push(
    waiting: list[tuple[float, int, int, int]], x: Array, y: Array, start: int, end: int
) -> None:
    """Put a segment into the queue, with its farthest point, if any is off the line."""
    if end - start < 2:
        return
    inner = slice(start + 1, end)
    across, up = x[end] - x[start], y[end] - y[start]
    length = np.hypot(across, up)
    right, above = x[inner] - x[start], y[inner] - y[start]
    distance = (
        np.hypot(right, above) if length == 0 else np.abs(right * up - above * across) / length
    )
    farthest = int(distance.argmax())
    # a rounding error of coordinates in [0, 1] is no corner
    if distance[farthest] > 1e-12:
        heappush(waiting, (-float(distance[farthest]), start, start + 1 + farthest, end))
