"""Pictures of the figures of the papers."""

from __future__ import annotations

from typing import Any

__all__ = ["panels"]

PANEL = (4.2, 3.4)  # inches


def panels(count: int, rows: int = 1) -> tuple[Any, list[Any]]:
    """A figure with so many axes, on a canvas that needs no display."""
    from matplotlib.figure import Figure

    columns = -(-count // rows)
    figure = Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    return figure, list(axes)
