"""Average ranks of models over data sets, and which of them cannot be told apart."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.displays.axes import axes_for
from proxmargin.stats.ranks import Nemenyi, nemenyi

__all__ = ["CriticalDifferenceDisplay"]

# heights, in units of the axis
ABOVE = 0.65  # from the upper edge to the ranks' line, for the critical difference
STEP = 0.5  # between rows of labels
BAR = 0.15  # between bars
GAP = 0.1  # from the end of a line to its label, in ranks
OVERHANG = 0.02  # of a bar beyond its models, in ranks
CONNECTOR = {"color": "black", "linewidth": 0.8, "clip_on": False}
MEMBERS = {"color": "tab:red", "linewidth": 3}


class CriticalDifferenceDisplay:
    """Models on a line of average ranks; bars join those that do not differ significantly.

    The picture of Demsar (2006): rank 1, the best, is at the left. Labels are beyond both ends of
    the line of ranks; a layout engine of the figure, or ``savefig(bbox_inches="tight")``, makes
    room for long names.

    Parameters
    ----------
    result : Nemenyi
        Of `proxmargin.stats.nemenyi`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    labels_ : list of matplotlib Text
        A label for each model, from the best to the worst.
    bars_ : list of matplotlib Line2D
        A bar for each group of `Nemenyi.groups`.

    Examples
    --------
    >>> from proxmargin import CriticalDifferenceDisplay
    >>> scores = [[0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.7, 0.6, 0.5]]
    >>> display = CriticalDifferenceDisplay.from_scores(scores)  # doctest: +SKIP
    """

    def __init__(self, result: Nemenyi) -> None:
        self.result = result

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        *,
        alpha: float = 0.05,
        higher_is_better: bool = True,
        ax: Any = None,
    ) -> Self:
        """Draw the comparison of a table of scores: parameters of `proxmargin.stats.nemenyi`."""
        return cls(nemenyi(scores, alpha=alpha, higher_is_better=higher_is_better)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw it into the axes, or into a new figure."""
        ax = axes_for(ax)
        groups = self.result.groups()
        below = BAR * (len(groups) + 1)  # the ranks' line is at height 0, the labels below the bars
        self._draw_axis(ax, below)
        self.bars_ = self._draw_bars(ax, groups)
        self.labels_ = self._draw_models(ax, below)
        self._draw_difference(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_axis(self, ax: Any, below: float) -> None:
        models = len(self.result.names)
        ax.set(xlim=(1, models), ylim=(-below - STEP * ((models + 1) // 2), ABOVE))
        ax.spines[["left", "right", "bottom"]].set_visible(False)
        ax.spines["top"].set_position(("data", 0.0))
        ax.xaxis.set_ticks_position("top")
        ax.yaxis.set_visible(False)
        ax.set_xticks(range(1, models + 1))
        ax.set_title("average rank (1 is the best)", fontsize="medium")

    def _draw_bars(self, ax: Any, groups: list[tuple[int, ...]]) -> list[Any]:
        """A bar under the line of ranks for each group."""
        ranks = self.result.average_ranks
        bars = []
        for number, group in enumerate(groups, start=1):
            ends = [ranks[group[0]] - OVERHANG, ranks[group[-1]] + OVERHANG]
            bars += ax.plot(ends, [-BAR * number] * 2, clip_on=False, **MEMBERS)
        return bars

    def _draw_models(self, ax: Any, below: float) -> list[Any]:
        """A line down from each rank and out to its label: the better half at the left."""
        ranks, models = self.result.average_ranks, len(self.result.names)
        labels = []
        for place, model in enumerate(np.argsort(ranks, kind="stable")):
            at_left = place < (models + 1) // 2
            height = -below - STEP * (place if at_left else models - 1 - place)
            edge, side = (1.0, -GAP) if at_left else (float(models), GAP)
            ax.plot([ranks[model]] * 2 + [edge + side / 2], [0.0, height, height], **CONNECTOR)
            text = f"{self.result.names[model]} ({ranks[model]:.2f})"
            align = {"ha": "right" if at_left else "left", "va": "center"}
            labels.append(ax.text(edge + side, height, text, fontsize="small", **align))
        return labels

    def _draw_difference(self, ax: Any) -> None:
        """The critical difference as a length, from rank 1, above the line of ranks."""
        length = self.result.critical_difference
        ax.plot([1.0, 1.0 + length], [ABOVE] * 2, "k|-", linewidth=1.5, clip_on=False)
        text = f"critical difference {length:.2f} at level {self.result.alpha:g}"
        ax.text(1.0, ABOVE - GAP, text, fontsize="small", va="top")
