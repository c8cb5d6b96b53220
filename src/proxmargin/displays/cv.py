"""The scores of cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from proxmargin.displays.axes import axes_for, count_features, drawable, show_strengths
from proxmargin.selection.base import CrossValidated
from proxmargin.selection.results import best, standard_errors, within_one_error

__all__ = ["CVDisplay"]


class CVDisplay:
    """Mean scores with their standard errors against the strength of the penalty.

    Lines mark the best mean score and the strongest penalty within one standard error of it. The
    numbers above are the features of the path of all rows, for the chosen l1_ratio. The complete
    folds of an interrupted search are drawn. The axis of strengths is logarithmic: ``alpha=0`` is
    not drawn.

    Parameters
    ----------
    estimator : a fitted cross-validated classifier

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    errorbars_ : list of matplotlib ErrorbarContainer
        One for each l1_ratio (with relaxed fits, each pair of l1_ratio and gamma).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import CVDisplay, HuberizedSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HuberizedSVCCV(standardize=True).fit(X, y)  # doctest: +SKIP
    >>> display = CVDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(self, estimator: CrossValidated) -> None:
        self.estimator = estimator

    @classmethod
    def from_estimator(cls, estimator: CrossValidated, *, ax: Any = None) -> Self:
        """Draw the scores of a fitted cross-validated classifier."""
        return cls(estimator).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw them into the axes, or into a new figure.

        Raises
        ------
        ValueError
            The search was interrupted before a fold was complete; all strengths are zero.
        """
        check_is_fitted(self.estimator, "cv_scores_")
        model = self.estimator._of_complete_folds()
        name = model.strength.name
        grids, scores = getattr(model, f"{name}s_"), model.cv_scores_
        if not scores.size:
            raise ValueError("no fold has all its scores: there is nothing to draw")
        # the same strengths of every l1_ratio are zero, if any
        shown = drawable(grids[0])
        ax = axes_for(ax)
        means, errors = scores.mean(axis=2), standard_errors(scores)
        labels = _labels(model)
        style = {"fmt": "o-", "markersize": 3.5, "linewidth": 1.0, "elinewidth": 0.8, "capsize": 2}
        self.errorbars_ = [
            ax.errorbar(
                *(part[shown] for part in each),
                label=label or None,
                **style,
            )
            for *each, label in zip(grids, means, errors, labels, strict=True)
        ]
        marks = ("best", best, "--"), ("one standard error", within_one_error, ":")
        for label, choice, line in marks:
            strength = grids[choice(scores)]
            text = f"{label}: {name}={strength:.3g}"
            ax.axvline(strength or np.nan, color="0.3", linestyle=line, label=text)
        show_strengths(ax, name, model.strength.falls)
        what = "negated loss" if model.scoring is None else str(model.scoring)
        ax.set_ylabel(f"{what}, mean ± standard error of {scores.shape[2]} folds")
        ax.spines[["top", "right"]].set_visible(False)
        if hasattr(model, "path_"):
            several = len(np.unique(np.atleast_1d(getattr(model, "l1_ratios", 1.0)))) > 1
            path, of = model.path_, f", l1_ratio={model.l1_ratio_:g}" if several else ""
            count_features(ax, path.strengths[shown], path.n_nonzero[shown], f"features{of}")
        ax.legend(edgecolor="none", framealpha=0.9)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _labels(model: CrossValidated) -> list[str]:
    """For each row of scores, what tells it apart from the others."""
    told = {name: values for name, values in model._of_rows.items() if np.unique(values).size > 1}
    rows = range(len(model.cv_scores_))
    return [", ".join(f"{name}={values[row]:g}" for name, values in told.items()) for row in rows]
