"""Figures of one size of panel, on a canvas that needs no display."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

__all__ = ["panels"]

PANEL = (4.2, 3.4)  # inches
LEGEND = 7.0  # inches that three columns of a legend above the panels take
LEGEND_HEIGHT = 0.5  # inches


def panels(count: int, rows: int = 1, *, legend: bool = False) -> tuple[Figure, list[Any]]:
    """A figure with so many axes, row by row; ``legend`` leaves room for one above them."""
    columns = -(-count // rows)
    width, height = PANEL[0] * columns, PANEL[1] * rows
    size = (max(width, LEGEND), height + LEGEND_HEIGHT) if legend else (width, height)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    return figure, list(axes)
