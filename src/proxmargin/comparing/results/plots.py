"""The pictures of a comparison as its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxmargin.displays.comparison import ComparisonDisplay

__all__ = ["Plots"]


class Plots:
    """Methods that draw with `proxmargin.ComparisonDisplay`, into new axes or those given.

    ``metric`` is one of those computed, by default the scoring; ``top`` the number of models.
    """

    def plot_scores(
        self, *, metric: str | None = None, ax: Any = None, top: int | None = None
    ) -> ComparisonDisplay:
        """Mean scores with their intervals, and the score of the majority class."""
        return self._drawn("intervals", metric=metric, ax=ax, top=top)

    def plot_differences(
        self, *, metric: str | None = None, ax: Any = None, top: int | None = None
    ) -> ComparisonDisplay:
        """Differences from the best with their intervals."""
        return self._drawn("differences", metric=metric, ax=ax, top=top)

    def plot_folds(
        self, *, metric: str | None = None, ax: Any = None, top: int | None = None
    ) -> ComparisonDisplay:
        """The score of every fold."""
        return self._drawn("folds", metric=metric, ax=ax, top=top)

    def plot_features(
        self, *, metric: str | None = None, ax: Any = None, top: int | None = None
    ) -> ComparisonDisplay:
        """Mean scores against the number of features used."""
        return self._drawn("features", metric=metric, ax=ax, top=top)

    def plot_seconds(
        self, *, metric: str | None = None, ax: Any = None, top: int | None = None
    ) -> ComparisonDisplay:
        """Mean scores against the seconds of a fit."""
        return self._drawn("seconds", metric=metric, ax=ax, top=top)

    def plot_roc(
        self, *, label: Any = None, ax: Any = None, top: int | None = None
    ) -> ComparisonDisplay:
        """ROC curves of the held-out scores: of a class, or of more than two classes the mean."""
        return self._drawn("roc", label=label, ax=ax, top=top)

    def plot_precision_recall(
        self, *, label: Any = None, ax: Any = None, top: int | None = None
    ) -> ComparisonDisplay:
        """Precision-recall curves of the held-out scores, as `plot_roc`."""
        return self._drawn("precision_recall", label=label, ax=ax, top=top)

    def _drawn(self, kind: str, **options: Any) -> ComparisonDisplay:
        from proxmargin.displays.comparison import ComparisonDisplay

        return ComparisonDisplay.from_comparison(self, kind=kind, **options)
