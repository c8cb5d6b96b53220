"""The pictures of the figures of Chierchia et al. (2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.papers.pictures import panels as axes_of

__all__ = ["bars", "courses", "drawn"]

GROUP = 0.8  # width of the bars of a group, of the distance of two groups


def drawn(panels: Mapping[int, Mapping[str, np.ndarray]], shares: Sequence[float]) -> Figure:
    """A row for each L/K: errors with their standard deviations, and zeros, against C.

    Circles are at the fewest errors, as in the paper.
    """
    figure, axes = axes_of(2 * len(panels), len(panels), legend=True)
    for (each, panel), left, right in zip(panels.items(), axes[::2], axes[1::2], strict=True):
        for name, found in panel.items():
            (errors, zeros), spread = found.mean(axis=0).T, found[..., 0].std(axis=0)
            line = left.errorbar(shares, errors, spread, capsize=2, label=name)[0]
            right.plot(shares, zeros, color=line.get_color(), label=name)
            best = int(np.nanargmin(errors))
            for axis, height in ((left, errors[best]), (right, zeros[best])):
                axis.plot(shares[best], height, "o", color=line.get_color())
        for axis, what in ((left, "% of errors"), (right, "% of zeros")):
            axis.set(xscale="log", xlabel="C over the least", ylabel=what, title=f"L/K = {each}")
    _legend(figure, axes[0])
    return figure


def bars(
    panels: Mapping[str, Mapping[str, Mapping[str, float]]], below: str, beside: str
) -> Figure:
    """A panel for each title: groups of bars, one for each method, on a logarithmic scale."""
    figure, axes = axes_of(len(panels), legend=True)
    for (title, groups), axis in zip(panels.items(), axes, strict=True):
        methods = list(next(iter(groups.values())))
        width = GROUP / len(methods)
        for k, name in enumerate(methods):
            places = np.arange(len(groups)) + (k - (len(methods) - 1) / 2) * width
            axis.bar(places, [group[name] for group in groups.values()], width, label=name)
        axis.set(yscale="log", xlabel=below, ylabel=beside, title=title)
        axis.set_xticks(np.arange(len(groups)), list(groups))
    _legend(figure, axes[0])
    return figure


def courses(panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> Figure:
    """A panel for each title: the distance of each method to its end, against seconds."""
    figure, axes = axes_of(len(panels), legend=True)
    for (title, lines), axis in zip(panels.items(), axes, strict=True):
        for name, line in lines.items():
            axis.plot(*zip(*line, strict=True), ".-", label=name)
        scales = {"xscale": "log", "yscale": "log"}
        axis.set(**scales, xlabel="CPU seconds", ylabel="relative distance", title=title)
    _legend(figure, axes[0])
    return figure


def _legend(figure: Figure, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 3))
