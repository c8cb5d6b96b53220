"""Shared parts of the displays: axes of strengths, and the import of matplotlib."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Array, Axes

_matplotlib = partial(optional, use="A picture", extra="plot")
APART = 0.045  # least distance of two names, relative to the height of the picture
COUNTS = 9  # maximum number of feature counts above a picture


def figure(width: float = 7.5, height: float = 4.8) -> Any:
    """A figure for a file: no window, whatever the backend."""
    return _matplotlib("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")


def pages(stream: object) -> Any:
    """A PDF of several figures, written to a stream."""
    return _matplotlib("matplotlib.backends.backend_pdf").PdfPages(stream)


def axes_for(ax: Axes | None) -> Axes:
    """The given axes, or those of a new figure of pyplot."""
    if ax is not None:
        return ax
    return _matplotlib("matplotlib.pyplot").subplots(figsize=(7.5, 4.8), layout="constrained")[1]


def titled(ax: Axes, title: str) -> None:
    """A title at the left, in which dollar signs are no formulas; no frame at the top and right."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, loc="left", fontsize="medium").set_parse_math(False)


def finish(display: Any, ax: Axes, title: str) -> None:
    """What all displays end with: a title and their axes."""
    titled(ax, title)
    display.ax_, display.figure_ = ax, ax.figure


def drawable(strengths: Array) -> NDArray[np.bool_]:
    """Which strengths have a place on a logarithmic axis: all but alpha=0, of which one must be."""
    shown = strengths > 0
    if not shown.any():
        raise ValueError("alpha=0 has no place on a logarithmic axis, and there is no other alpha")
    return np.asarray(shown)


def show_strengths(ax: Axes, name: str, falls: bool) -> None:
    """A logarithmic axis of strengths, the strongest penalty at the left."""
    ax.set_xscale("log")
    if falls and not ax.xaxis_inverted():
        ax.invert_xaxis()
    ax.set_xlabel(f"{name} (the penalty weakens to the right)")


def count_features(
    ax: Axes, strengths: Array, counts: NDArray[np.intp], label: str = "features"
) -> None:
    """Write the number of features above some of the strengths."""
    shown = np.unique(np.linspace(0, strengths.size - 1, COUNTS).round().astype(int))
    top = ax.secondary_xaxis("top")
    top.set_xticks(strengths[shown], [str(count) for count in counts[shown]], minor=False)
    top.set_xticks([], minor=True)
    top.tick_params(length=3)
    top.set_xlabel(label)


def apart(heights: Array) -> Array:
    """The heights, at least `APART` from each other, in their order."""
    order = np.argsort(heights)
    placed = heights[order]
    for _ in range(100):
        short = APART - np.diff(placed)
        if np.all(short <= 1e-6):
            break
        push = np.maximum(short, 0.0) / 2.0
        placed[:-1] -= push
        placed[1:] += push
    moved = np.empty_like(placed)
    moved[order] = placed
    return moved
