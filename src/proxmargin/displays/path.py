"""The coefficients along a path."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from proxmargin.displays.axes import apart, axes_for, count_features, drawable, show_strengths
from proxmargin.estimators.factors import unpenalised
from proxmargin.inputs.validation import check_number
from proxmargin.paths import Path, margin_path
from proxmargin.selection.base import CrossValidated

__all__ = ["LETTERS", "PathDisplay", "name_lines"]

Array = NDArray[np.float64]

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
    >>> display = PathDisplay.from_estimator(model, X, y)  # doctest: +SKIP
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        label: Any = None,
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

    def plot(self, ax: Any = None, *, label: Any = None, n_names: int = 6) -> Self:
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
        path = self.path.picked(order[drawable(self.path.strengths[order])])
        values = self._values(path, label)
        ax = axes_for(ax)
        used = np.flatnonzero(values.any(axis=0))
        by_size = used[np.argsort(-np.abs(values[:, used]).max(axis=0), kind="stable")]
        is_free = np.isin(by_size, unpenalised(path.template, path.stacked.shape[1]))
        free, largest = by_size[is_free][:n_names], by_size[~is_free][:n_names]
        named = np.concatenate([free, largest])
        others = np.setdiff1d(used, named)
        grey = {"color": "0.75", "linewidth": 0.8}
        self.lines_ = [ax.plot(path.strengths, values[:, j], **grey)[0] for j in others]
        coloured = [ax.plot(path.strengths, values[:, j], linewidth=1.6)[0] for j in named]
        for line in coloured[: free.size]:
            line.set_linestyle("--")
        self.lines_ += coloured
        ax.axhline(0.0, color="0.3", linewidth=0.6)
        show_strengths(ax, path.strength.name, path.strength.falls)
        ax.margins(x=0.0)
        ax.set_ylabel(self._meaning(path, label))
        ax.spines[["top", "right"]].set_visible(False)
        count_features(ax, path.strengths, path.n_nonzero)
        numbered = [f"x{j}" for j in range(values.shape[1])]
        names = getattr(path.template, "feature_names_in_", numbered)
        name_lines(ax, coloured, [str(names[j])[:LETTERS] for j in named])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _values(self, path: Path, label: Any) -> Array:
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

    def _meaning(self, path: Path, label: Any) -> str:
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


def name_lines(ax: Any, lines: list[Any], names: list[str]) -> None:
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
