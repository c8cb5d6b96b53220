"""How often features are selected on halves of the samples."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from proxmargin.displays.axes import axes_for, drawable, show_strengths
from proxmargin.displays.path import LETTERS, name_lines
from proxmargin.inputs.validation import check_choice, check_number
from proxmargin.paths.strength import strength_of
from proxmargin.selection.stability.selector import StabilitySelection

__all__ = ["StabilityDisplay"]

STABLE = "C0"  # colour of bars
OTHER = "0.75"  # a light grey
FAINT = {"color": "0.75", "linewidth": 0.8}  # of the paths without a name


class StabilityDisplay:
    """Frequencies along the path, or bars of the most frequent features, with the threshold.

    With ``cluster`` features of a cluster share a frequency, and are drawn as one.

    Parameters
    ----------
    selector : a fitted `proxmargin.StabilitySelection`

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        With ``kind='paths'``: one for each feature that any half-sample selects.
    bars_ : matplotlib BarContainer
        With ``kind='bars'``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SparseLogisticRegression, StabilityDisplay, StabilitySelection
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> lasso = SparseLogisticRegression(l1_ratio=1.0, standardize=True)
    >>> stable = StabilitySelection(lasso, threshold=0.75, pfer=1).fit(X, y)  # doctest: +SKIP
    >>> display = StabilityDisplay.from_estimator(stable, kind="bars")  # doctest: +SKIP
    """

    lines_: list[Any]
    bars_: Any

    def __init__(self, selector: StabilitySelection) -> None:
        self.selector = selector

    @classmethod
    def from_estimator(
        cls, selector: StabilitySelection, *, ax: Any = None, kind: str = "paths", top: int = 15
    ) -> Self:
        """Draw the frequencies of a fitted selector; arguments as in `plot`."""
        return cls(selector).plot(ax, kind=kind, top=top)

    def plot(self, ax: Any = None, *, kind: str = "paths", top: int = 15) -> Self:
        """Draw them into the axes, or into a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        kind : {'paths', 'bars'}
            Frequencies against the strength of the penalty, on a logarithmic axis; or the
            largest frequencies as bars.
        top : int
            The number of features with names: of paths the most frequent of those that
            are stable, of bars all that are drawn.

        Raises
        ------
        ValueError
            Another kind, no count, or no strength above zero.
        """
        check_choice("kind", kind, ("paths", "bars"))
        check_number("top", top, low=0 if kind == "paths" else 1, integer=True)
        check_is_fitted(self.selector, "max_frequencies_")
        ax = axes_for(ax)
        if kind == "paths":
            self._draw_paths(ax, top)
        else:
            self._draw_bars(ax, top)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_paths(self, ax: Any, top: int) -> None:
        model, order = self.selector, self._ordered()
        shown = drawable(model.alphas_)
        strengths, frequencies = model.alphas_[shown], model.frequencies_[:, shown]
        order = order[model.max_frequencies_[order] > 0]
        is_named = model.get_support()[order]
        named, others = order[is_named][:top], order[~is_named]
        others = np.concatenate([order[is_named][top:], others])
        # one point is no line
        mark = {"marker": "o"} if strengths.size == 1 else {}
        faint = [ax.plot(strengths, frequencies[j], **FAINT, **mark)[0] for j in others]
        coloured = [ax.plot(strengths, frequencies[j], linewidth=1.6, **mark)[0] for j in named]
        self.lines_ = faint + coloured
        if np.isfinite(model.threshold_):
            ax.axhline(model.threshold_, color="0.3", linestyle="--", linewidth=1.0)
        strength = strength_of(model.estimator)
        show_strengths(ax, strength.name, strength.falls)
        if strengths.size > 1:
            ax.margins(x=0.0)
        ax.set_ylim(0.0, 1.03)
        ax.set_ylabel(f"share of {2 * model.n_pairs} half-samples that selected it")
        name_lines(ax, coloured, [self._name(j) for j in named])

    def _draw_bars(self, ax: Any, top: int) -> None:
        model, order = self.selector, self._ordered()[:top]
        heights, places = model.max_frequencies_[order], np.arange(order.size)
        colours = [STABLE if stable else OTHER for stable in model.get_support()[order]]
        self.bars_ = ax.barh(places, heights, color=colours)
        ax.set_yticks(places, [self._name(j) for j in order], fontsize="small")
        ax.invert_yaxis()
        if np.isfinite(model.threshold_):
            label = f"threshold {model.threshold_:.3g}: at most {model.pfer_:.2g} false expected"
            ax.axvline(model.threshold_, color="0.3", linestyle="--", linewidth=1.0, label=label)
            ax.legend(edgecolor="none", framealpha=0.9, loc="lower right", fontsize="small")
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel(f"share of {2 * model.n_pairs} half-samples that selected it")

    def _ordered(self) -> NDArray[np.intp]:
        """The first feature of each cluster, the most frequent first."""
        first = np.unique(self.selector.cluster_, return_index=True)[1]
        frequencies = self.selector.max_frequencies_[first]
        return np.asarray(first[np.argsort(-frequencies, kind="stable")])

    def _name(self, feature: int) -> str:
        model = self.selector
        names = getattr(model, "feature_names_in_", None)
        name = f"x{feature}" if names is None else str(names[feature])[:LETTERS]
        others = np.count_nonzero(model.cluster_ == model.cluster_[feature]) - 1
        return f"{name} + {others}" if others else name
