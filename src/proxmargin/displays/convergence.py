"""The course of a fit: its certified gap against iterations, passes or seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

from proxmargin.callbacks import History
from proxmargin.displays.axes import axes_for

__all__ = ["ConvergenceDisplay"]

AXES = {
    "n_iter": "iterations",
    "n_passes": "passes over the data",
    "seconds": "seconds",
}


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
    >>> model = SVC(solver="fapg", callbacks=[History(every=1)]).fit(X, y)  # doctest: +SKIP
    >>> display = ConvergenceDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(
        self,
        histories: Mapping[str, History],
        *,
        x: Literal["n_iter", "n_passes", "seconds"] = "n_iter",
    ) -> None:
        if x not in AXES:
            raise ValueError(f"x={x!r} must be one of {', '.join(AXES)}")
        empty = [name for name, history in histories.items() if not len(history)]
        if empty or not histories:
            raise ValueError(f"no certificates were recorded: {', '.join(empty) or 'no history'}")
        self.histories = dict(histories)
        self.x = x

    @classmethod
    def from_estimator(
        cls,
        *estimators: Any,
        x: Literal["n_iter", "n_passes", "seconds"] = "n_iter",
        ax: Any = None,
    ) -> Self:
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

    def plot(self, ax: Any = None) -> Self:
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
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _problems(history: History) -> list[list[dict[str, Any]]]:
    """The rows of each class problem."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in history.rows:
        found.setdefault(row["problem"], []).append(row)
    return list(found.values())
