"""The statistic of a permutation test among those of the permuted labels."""

from __future__ import annotations

from typing import Any, Self

from proxmargin.displays.axes import axes_for
from proxmargin.permutations import PermutationTest, permutation_test

__all__ = ["PermutationDisplay"]

MOST_BINS = 60  # of the histogram
NULL = {"color": "tab:gray", "alpha": 0.7}
OBSERVED = {"color": "tab:red", "linewidth": 2}


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
    >>> display = PermutationDisplay.from_estimator(DWD(), X, y)  # doctest: +SKIP
    """

    def __init__(self, test: PermutationTest) -> None:
        self.test = test

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> Self:
        """Run the test and draw it: parameters of `proxmargin.permutation_test`."""
        return cls(permutation_test(estimator, X, y, **options)).plot(ax)

    @classmethod
    def from_test(cls, test: PermutationTest, *, ax: Any = None) -> Self:
        """Draw a test."""
        return cls(test).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw it into the axes, or into a new figure."""
        ax = axes_for(ax)
        test = self.test
        kind = "all" if test.exact else "permuted"
        bins = min(MOST_BINS, max(10, int(test.null.size**0.5)))
        label = f"{kind} labels ({test.n_permutations})"
        _, _, self.bars_ = ax.hist(test.null, bins=bins, label=label, **NULL)
        told = f"given labels: p = {test.pvalue:.3g}, z = {test.zscore:.3g}"
        self.line_ = ax.axvline(test.statistic, label=told, **OBSERVED)
        ax.set(xlabel=test.name, ylabel="labelings")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
