"""The pictures of Theorem 1 and Figure 1 of Xu et al. (2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from benchmarks.papers.pictures import panels as axes_of

__all__ = ["Course", "courses", "majorant"]


class Course(NamedTuple):
    """Distances to the optimum over the first one, and 1 - tau of the proof."""

    distances: np.ndarray
    proved: float


def courses(panels: Mapping[str, Mapping[str, Course]]) -> Figure:
    """A panel for each title: distances of each run against iterations, the proved bound dashed."""
    figure, axes = axes_of(len(panels))
    for (title, runs), axis in zip(panels.items(), axes, strict=True):
        for name, course in runs.items():
            line = axis.semilogy(course.distances, label=name)[0]
            index = np.arange(course.distances.size)
            axis.semilogy((1.0 - course.proved) ** index, "--", color=line.get_color(), lw=0.8)
        axis.set(title=title, xlabel="iteration", ylabel="|u^k - u*| / |u^0 - u*|")
    axes[0].legend()
    return figure


def majorant(
    grid: np.ndarray, curves: Mapping[str, np.ndarray], marks: Mapping[str, Sequence[float]]
) -> Figure:
    """Curves over a line, with named points."""
    figure, (axis,) = axes_of(1)
    for name, values in curves.items():
        axis.plot(grid, values, label=name)
    for name, (place, height) in marks.items():
        axis.plot(place, height, "o", color="black")
        axis.annotate(name, (place, height), (4, 6), textcoords="offset points")
    axis.set_ylim(0.0, 1.2 * max(height for _, height in marks.values()))
    axis.legend()
    return figure
