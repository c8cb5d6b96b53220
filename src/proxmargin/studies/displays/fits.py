"""Pictures of single results: the course of a fit, a permutation test, ranks over data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.models.permutations import PermutationTest, permutation_test
from proxmargin.runtime.types import Axes, Estimator, Record, Values
from proxmargin.solvers.callbacks import History
from proxmargin.studies.displays.axes import axes_for, finish
from proxmargin.studies.stats.ranks import Nemenyi, nemenyi

Clock = Literal["n_iter", "n_passes", "seconds"]
AXES = {"n_iter": "iterations", "n_passes": "passes over the data", "seconds": "seconds"}


class ConvergenceDisplay:
    """The relative duality gap of fits on a logarithmic axis, one line a fit.

    A gap of zero is drawn at the least positive one. The pale line is the gap of each iterate, the
    full one the smallest so far, which is that of the published model.

    Parameters
    ----------
    histories : mapping of str to History
        By the names of the legend.
    x : {"n_iter", "n_passes", "seconds"}

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        The full line of each fit.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import ConvergenceDisplay, History, SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC(C=0.1, standardize=True, solver="fapg", callbacks=[History(every=1)])
    >>> display = ConvergenceDisplay.from_estimator(model.fit(X, y))
    >>> len(display.lines_)
    1
    """

    def __init__(self, histories: Mapping[str, History], *, x: Clock = "n_iter") -> None:
        if x not in AXES:
            raise ValueError(f"x={x!r} must be one of {', '.join(AXES)}")
        empty = [name for name, history in histories.items() if not len(history)]
        if empty or not histories:
            raise ValueError(f"no certificates were recorded: {', '.join(empty) or 'no history'}")
        self.histories = dict(histories)
        self.x = x

    @classmethod
    def from_estimator(cls, *estimators: Any, x: Clock = "n_iter", ax: Axes | None = None) -> Self:
        """Draw the histories of fitted estimators, which had a `History` among their callbacks.

        Raises
        ------
        ValueError
            An estimator has no ``history_``.
        """
        histories = {}
        for number, model in enumerate(estimators):
            name = f"{type(model).__name__}, {getattr(model, 'solver', '')}"
            if not isinstance(getattr(model, "history_", None), History):
                raise ValueError(f"{name} has no history_: fit it with callbacks=[History()]")
            histories[name if name not in histories else f"{name} ({number})"] = model.history_
        return cls(histories, x=x).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw them into the axes, or into a new figure."""
        ax = axes_for(ax)
        self.lines_ = []
        for name, history in self.histories.items():
            label: str | None = name
            for rows in _problems(history):
                where = [float(row[self.x]) for row in rows]
                gaps = np.array([float(row["relative_gap"]) for row in rows])
                least = gaps[gaps > 0].min(initial=1.0)
                shown = np.clip(gaps, least, None)
                (line,) = ax.plot(where, np.minimum.accumulate(shown), label=label)
                ax.plot(where, shown, color=line.get_color(), alpha=0.3, linewidth=0.8)
                self.lines_.append(line)
                label = None  # the other classes of the same fit
        ax.set_yscale("log")
        ax.set_xlabel(AXES[self.x])
        ax.set_ylabel("relative duality gap")
        ax.legend(fontsize="small")
        finish(self, ax, "Certified distance from the optimum")
        return self


def _problems(history: History) -> list[list[Record]]:
    """The rows of each class problem."""
    found: dict[Any, list[Record]] = {}
    for row in history.rows:
        found.setdefault(row["problem"], []).append(row)
    return list(found.values())


MOST_BINS = 60  # of the histogram
NULL: Record = {"color": "tab:gray", "alpha": 0.7}
OBSERVED: Record = {"color": "tab:red", "linewidth": 2}


class PermutationDisplay:
    """A histogram of the statistic under permuted labels, with a line at that of the given ones.

    Parameters
    ----------
    test : PermutationTest
        Of `proxmargin.permutation_test`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : container of matplotlib Rectangles
    line_ : matplotlib Line2D

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import DWD, PermutationDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DWD(standardize=True)
    >>> display = PermutationDisplay.from_estimator(model, X[:60], y[:60], n_permutations=99)
    >>> display.ax_.get_ylabel() != ""
    True
    """

    def __init__(self, test: PermutationTest) -> None:
        self.test = test

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, X: Values, y: Values, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Run the test and draw it: parameters of `proxmargin.permutation_test`."""
        return cls(permutation_test(estimator, X, y, **options)).plot(ax)

    @classmethod
    def from_test(cls, test: PermutationTest, *, ax: Axes | None = None) -> Self:
        """Draw a test."""
        return cls(test).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it into the axes, or into a new figure."""
        ax = axes_for(ax)
        test = self.test
        kind = "all" if test.exact else "permuted"
        bins = min(MOST_BINS, max(10, int(test.null.size**0.5)))
        label = f"{kind} labels ({test.n_permutations})"
        _, _, self.bars_ = ax.hist(test.null, bins=bins, label=label, **NULL)
        told = f"given labels: p = {test.pvalue:.3g}, z = {test.zscore:.3g}"
        self.line_ = ax.axvline(test.statistic, label=told, **OBSERVED)
        ax.set(xlabel=test.name, ylabel="number of permutations")
        finish(self, ax, "Permutation test: the labels as given, and in other orders")
        ax.legend()
        return self


# heights, in units of the axis
ABOVE = 0.65  # from the upper edge to the ranks' line, for the critical difference
STEP = 0.5  # between rows of labels
BAR = 0.15  # between bars
GAP = 0.1  # from the end of a line to its label, in ranks
OVERHANG = 0.02  # of a bar beyond its models, in ranks
CONNECTOR: Record = {"color": "black", "linewidth": 0.8, "clip_on": False}
MEMBERS: Record = {"color": "tab:red", "linewidth": 3}


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
    >>> display = CriticalDifferenceDisplay.from_scores(scores)
    >>> len(display.labels_)
    3
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
        ax: Axes | None = None,
    ) -> Self:
        """Draw the comparison of a table of scores: parameters of `proxmargin.stats.nemenyi`."""
        return cls(nemenyi(scores, alpha=alpha, higher_is_better=higher_is_better)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
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

    def _draw_axis(self, ax: Axes, below: float) -> None:
        models = len(self.result.names)
        ax.set(xlim=(1, models), ylim=(-below - STEP * ((models + 1) // 2), ABOVE))
        ax.spines[["left", "right", "bottom"]].set_visible(False)
        ax.spines["top"].set_position(("data", 0.0))
        ax.xaxis.set_ticks_position("top")
        ax.yaxis.set_visible(False)
        ax.set_xticks(range(1, models + 1))
        ax.set_title("average rank (1 is the best)", fontsize="medium")

    def _draw_bars(self, ax: Axes, groups: list[tuple[int, ...]]) -> Sequence[object]:
        """A bar under the line of ranks for each group."""
        ranks = self.result.average_ranks
        bars = []
        for number, group in enumerate(groups, start=1):
            ends = [ranks[group[0]] - OVERHANG, ranks[group[-1]] + OVERHANG]
            bars += ax.plot(ends, [-BAR * number] * 2, clip_on=False, **MEMBERS)
        return bars

    def _draw_models(self, ax: Axes, below: float) -> Sequence[object]:
        """A line down from each rank and out to its label: the better half at the left."""
        ranks, models = self.result.average_ranks, len(self.result.names)
        labels = []
        for place, model in enumerate(np.argsort(ranks, kind="stable")):
            at_left = place < (models + 1) // 2
            height = -below - STEP * (place if at_left else models - 1 - place)
            edge, side = (1.0, -GAP) if at_left else (float(models), GAP)
            ax.plot([ranks[model]] * 2 + [edge + side / 2], [0.0, height, height], **CONNECTOR)
            text = f"{self.result.names[model]} ({ranks[model]:.2f})"
            align: Record = {"ha": "right" if at_left else "left", "va": "center"}
            labels.append(ax.text(edge + side, height, text, fontsize="small", **align))
        return labels

    def _draw_difference(self, ax: Axes) -> None:
        """The critical difference as a length, from rank 1, above the line of ranks."""
        length = self.result.critical_difference
        ax.plot([1.0, 1.0 + length], [ABOVE] * 2, "k|-", linewidth=1.5, clip_on=False)
        text = f"critical difference {length:.2f} at level {self.result.alpha:g}"
        ax.text(1.0, ABOVE - GAP, text, fontsize="small", va="top")
