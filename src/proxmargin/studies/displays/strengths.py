"""Pictures along the strength of the penalty: coefficients, scores, selection frequencies."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from proxmargin.data.inputs.parameters import check_choice, check_number
from proxmargin.models.fitting.factors import unpenalised
from proxmargin.models.paths import Path, margin_path
from proxmargin.models.paths.grid import strength_of
from proxmargin.models.selection.base import CrossValidated
from proxmargin.models.selection.results import best, standard_errors, within_one_error
from proxmargin.models.selection.stability.selector import StabilitySelection
from proxmargin.runtime.types import Array, Axes, Estimator, Record
from proxmargin.studies.displays.axes import (
    apart,
    axes_for,
    count_features,
    drawable,
    finish,
    show_strengths,
)

LETTERS = 24  # maximum length of the name of a feature


class PathDisplay:
    """Coefficients against the strength of the penalty, with the number of features above.

    The axis of strengths is logarithmic: a model with ``alpha=0`` is not drawn.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D
        One for each feature that any model has.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC, PathDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = HuberizedSVC(l1_ratio=1.0, standardize=True)
    >>> display = PathDisplay.from_estimator(model, X, y, n_alphas=20)
    >>> len(display.lines_) <= 30
    True
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Axes | None = None,
        label: object = None,
        n_names: int = 6,
        **options: Any,
    ) -> Self:
        """Draw the path of an estimator.

        Parameters
        ----------
        estimator : a cross-validated classifier that is fitted, or one that has a path
            The path is the ``path_`` of the first, or computed by `margin_path` for the other.
        X, y : data, for `margin_path`
            Not read, as ``options``, where the estimator is cross-validated: its path is that of
            the data that it was fitted to.
        ax, label, n_names
            As in `plot`.
        **options
            Further arguments of `margin_path`.
        """
        searched = isinstance(estimator, CrossValidated)
        path = _path_of(estimator) if searched else margin_path(estimator, X, y, **options)
        return cls(path).plot(ax, label=label, n_names=n_names)

    def plot(self, ax: Axes | None = None, *, label: object = None, n_names: int = 6) -> Self:
        """Draw the coefficients, per standard deviation of their features where standardised.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        label : a class, optional
            The one whose coefficients are drawn. By default of two classes the second (those of
            the first are their negatives), of more the Euclidean norm of those of all.
        n_names : int
            Number of features, those with the largest coefficients, drawn in colour with names.
            Features without a penalty, which every model has, are named besides them, and dashed.

        Raises
        ------
        ValueError
            There is no such class; ``n_names`` is no count; all strengths are zero.
        """
        check_number("n_names", n_names, low=0, integer=True)
        order = self.path.strength.order(self.path.strengths)
        path = self.path._picked(order[drawable(self.path.strengths[order])])
        values = self._values(path, label)
        ax = axes_for(ax)
        used = np.flatnonzero(values.any(axis=0))
        by_size = used[np.argsort(-np.abs(values[:, used]).max(axis=0), kind="stable")]
        is_free = np.isin(by_size, unpenalised(path.template, path.stacked.shape[1]))
        free, largest = by_size[is_free][:n_names], by_size[~is_free][:n_names]
        named = np.concatenate([free, largest])
        others = np.setdiff1d(used, named)
        grey: Record = {"color": "0.75", "linewidth": 0.8}
        self.lines_ = [ax.plot(path.strengths, values[:, j], **grey)[0] for j in others]
        coloured = [ax.plot(path.strengths, values[:, j], linewidth=1.6)[0] for j in named]
        for line in coloured[: free.size]:
            line.set_linestyle("--")
        self.lines_ += coloured
        ax.axhline(0.0, color="0.3", linewidth=0.6)
        show_strengths(ax, path.strength.name, path.strength.falls)
        ax.margins(x=0.0)
        ax.set_ylabel(self._meaning(path, label))
        count_features(ax, path.strengths, path.n_nonzero)
        numbered = [f"x{j}" for j in range(values.shape[1])]
        names = getattr(path.template, "feature_names_in_", numbered)
        name_lines(ax, coloured, [str(names[j])[:LETTERS] for j in named])
        finish(self, ax, f"Coefficients of {type(path.template).__name__}")
        return self

    def _values(self, path: Path, label: object) -> Array:
        """The drawn values, (n_strengths, n_features)."""
        coefs = path.coefs * np.where(np.isfinite(path.scale), path.scale, 0.0)
        if coefs.shape[1] == 1:
            coefs = np.concatenate([-coefs, coefs], axis=1)
            label = path.classes[1] if label is None else label
        if label is None:
            return np.asarray(np.linalg.norm(coefs, axis=1))
        classes = path.classes.tolist()
        if label not in classes:
            raise ValueError(f"label must be one of the classes {classes}, got {label!r}")
        return np.asarray(coefs[:, classes.index(label)])

    def _meaning(self, path: Path, label: object) -> str:
        several = path.intercepts.shape[1] > 1
        what = "norm over the classes" if several else "coefficient"
        what = what if label is None else f"coefficient of class {label}"
        return f"{what}, per standard deviation" if path.template.standardize else what


def _path_of(model: CrossValidated) -> Path:
    check_is_fitted(model, "cv_scores_")
    if not hasattr(model, "path_"):
        raise ValueError(
            f"this {type(model).__name__} has no path of all rows: it was fitted with refit=False, "
            "with a nonlinear kernel, or was interrupted"
        )
    path: Path = model.path_
    return path


def name_lines(ax: Axes, lines: list[Any], names: list[str]) -> None:
    """Names at the right ends of lines, moved apart."""
    low, high = ax.get_ylim()
    ends = np.array([(line.get_ydata()[-1] - low) / (high - low) for line in lines])
    for line, name, height in zip(lines, names, apart(ends), strict=True):
        ax.annotate(
            name,
            (1.01, height),
            xycoords="axes fraction",
            color=line.get_color(),
            fontsize="small",
            va="center",
            annotation_clip=False,
        )


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
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import CVDisplay, HuberizedSVCCV
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = HuberizedSVCCV(alphas=20, standardize=True).fit(X, y)
    >>> display = CVDisplay.from_estimator(model)
    >>> len(display.errorbars_)
    1
    """

    def __init__(self, estimator: CrossValidated) -> None:
        self.estimator = estimator

    @classmethod
    def from_estimator(cls, estimator: CrossValidated, *, ax: Axes | None = None) -> Self:
        """Draw the scores of a fitted cross-validated classifier."""
        return cls(estimator).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
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
        style: Record = {
            "fmt": "o-",
            "markersize": 3.5,
            "linewidth": 1.0,
            "elinewidth": 0.8,
            "capsize": 2,
        }
        self.errorbars_ = [
            ax.errorbar(*(part[shown] for part in each), label=label or None, **style)
            for *each, label in zip(grids, means, errors, labels, strict=True)
        ]
        marks = ("best", best, "--"), ("one standard error", within_one_error, ":")
        for label, choice, line in marks:
            strength = grids[choice(scores)]
            text = f"{label}: {name}={strength:.3g}"
            ax.axvline(strength or np.nan, color="0.3", linestyle=line, label=text)
        show_strengths(ax, name, model.strength.falls)
        what = "minus the loss" if model.scoring is None else str(model.scoring)
        ax.set_ylabel(f"{what}, mean ± standard error of {scores.shape[2]} folds")
        finish(self, ax, f"Cross-validation of {type(model).__name__.removesuffix('CV')}")
        if hasattr(model, "path_"):
            several = len(np.unique(np.atleast_1d(getattr(model, "l1_ratios", 1.0)))) > 1
            path, of = model.path_, f", l1_ratio={model.l1_ratio_:g}" if several else ""
            count_features(ax, path.strengths[shown], path.n_nonzero[shown], f"features{of}")
        ax.legend(edgecolor="none", framealpha=0.9)
        return self


def _labels(model: CrossValidated) -> list[str]:
    """For each row of scores, what tells it apart from the others."""
    told = {name: values for name, values in model._of_rows.items() if np.unique(values).size > 1}
    rows = range(len(model.cv_scores_))
    return [", ".join(f"{name}={values[row]:g}" for name, values in told.items()) for row in rows]


STABLE = "C0"  # colour of bars
OTHER = "0.75"  # a light grey
FAINT: Record = {"color": "0.75", "linewidth": 0.8}  # of the paths without a name


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
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import SparseLogisticRegression, StabilityDisplay, StabilitySelection
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> lasso = SparseLogisticRegression(l1_ratio=1.0, standardize=True)
    >>> stable = StabilitySelection(lasso, threshold=0.75, pfer=1, n_pairs=10, random_state=0)
    >>> display = StabilityDisplay.from_estimator(stable.fit(X, y), kind="bars", top=5)
    >>> len(display.bars_)
    5
    """

    lines_: list[Any]
    bars_: Any

    def __init__(self, selector: StabilitySelection) -> None:
        self.selector = selector

    @classmethod
    def from_estimator(
        cls,
        selector: StabilitySelection,
        *,
        ax: Axes | None = None,
        kind: str = "paths",
        top: int = 15,
    ) -> Self:
        """Draw the frequencies of a fitted selector; arguments as in `plot`."""
        return cls(selector).plot(ax, kind=kind, top=top)

    def plot(self, ax: Axes | None = None, *, kind: str = "paths", top: int = 15) -> Self:
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
        stable = np.count_nonzero(self.selector.stable_)
        finish(self, ax, f"Stability selection: {stable} of {self.selector.stable_.size} features")
        return self

    def _draw_paths(self, ax: Axes, top: int) -> None:
        model, order = self.selector, self._ordered()
        shown = drawable(model.alphas_)
        strengths, frequencies = model.alphas_[shown], model.frequencies_[:, shown]
        order = order[model.max_frequencies_[order] > 0]
        is_named = model.get_support()[order]
        named, others = order[is_named][:top], order[~is_named]
        others = np.concatenate([order[is_named][top:], others])
        # one point is no line
        mark: Record = {"marker": "o"} if strengths.size == 1 else {}
        faint = [ax.plot(strengths, frequencies[j], **FAINT, **mark)[0] for j in others]
        coloured = [ax.plot(strengths, frequencies[j], linewidth=1.6, **mark)[0] for j in named]
        self.lines_ = faint + coloured
        self._draw_threshold(ax, ax.axhline)
        strength = strength_of(model.estimator)
        show_strengths(ax, strength.name, strength.falls)
        if strengths.size > 1:
            ax.margins(x=0.0)
        ax.set_ylim(0.0, 1.03)
        ax.set_ylabel(f"share of {2 * model.n_pairs} half-samples that selected it")
        name_lines(ax, coloured, [self._name(j) for j in named])

    def _draw_bars(self, ax: Axes, top: int) -> None:
        model, order = self.selector, self._ordered()[:top]
        heights, places = model.max_frequencies_[order], np.arange(order.size)
        colours = [STABLE if stable else OTHER for stable in model.get_support()[order]]
        self.bars_ = ax.barh(places, heights, color=colours)
        ax.set_yticks(places, [self._name(j) for j in order], fontsize="small")
        ax.invert_yaxis()
        self._draw_threshold(ax, ax.axvline)
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel(f"share of {2 * model.n_pairs} half-samples that selected it")

    def _draw_threshold(self, ax: Axes, line: Any) -> None:
        model = self.selector
        if np.isfinite(model.threshold_):
            label = f"threshold {model.threshold_:.3g}: at most {model.pfer_:.2g} false expected"
            line(model.threshold_, color="0.3", linestyle="--", linewidth=1.0, label=label)
            ax.legend(edgecolor="none", framealpha=0.9, loc="lower right", fontsize="small")

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
