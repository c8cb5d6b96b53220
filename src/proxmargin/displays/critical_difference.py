"""Average ranks of models over data sets, and which of them cannot be told apart."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.displays.axes import axes_for
from proxmargin.stats.ranks import Nemenyi, nemenyi

__all__ = ["CriticalDifferenceDisplay"]

STEP = 0.5  # height of a row of labels, in units of the axis
BAR = 0.15  # height between bars


class CriticalDifferenceDisplay:
    """Models on a line of average ranks; bars join those that do not differ significantly.

    The picture of Demsar (2006): rank 1, the best, is at the left.

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
        ranks, models = self.result.average_ranks, len(self.result.names)
        order = np.argsort(ranks, kind="stable")
        groups = self.result.groups()
        top = BAR * (len(groups) + 1)
        ax.set(xlim=(1, models), ylim=(-STEP * (models // 2 + 1) - top, STEP * 1.5))
        ax.spines[["left", "right", "bottom"]].set_visible(False)
        ax.xaxis.set_ticks_position("top")
        ax.yaxis.set_visible(False)
        ax.set_xticks(range(1, models + 1))
        ax.set_xlabel("average rank (1 is the best)")
        ax.xaxis.set_label_position("top")
        bottom = ax.get_ylim()[0]
        ceiling = ax.get_ylim()[1]
        self.labels_ = []
        for place, model in enumerate(order):
            at_left = place < (models + 1) // 2
            row = place if at_left else models - 1 - place
            height = -top - STEP * (row + 0.5)
            edge = 1.0 if at_left else float(models)
            ax.plot([ranks[model]] * 2 + [edge], [ceiling, height, height], "k-", linewidth=0.8)
            text = f"{self.result.names[model]} ({ranks[model]:.2f})"
            align = {"ha": "left" if at_left else "right", "va": "bottom"}
            self.labels_.append(ax.text(edge, height, text, fontsize="small", **align))
        self.bars_ = []
        for number, group in enumerate(groups):
            ends = ranks[[group[0], group[-1]]] + [-0.02, 0.02]
            height = ceiling - BAR * (number + 2)
            self.bars_ += ax.plot(ends, [height, height], "-", color="tab:red", linewidth=3)
        ends = np.array([1.0, 1.0 + self.result.critical_difference])
        ax.plot(ends, [bottom, bottom], "k|-", linewidth=1.5, clip_on=False)
        difference = f"critical difference {self.result.critical_difference:.2f}"
        ax.text(1.0, bottom, f"{difference} at level {self.result.alpha:g}", va="bottom")
        self.ax_, self.figure_ = ax, ax.figure
        return self
