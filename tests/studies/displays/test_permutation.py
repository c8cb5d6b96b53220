"""The picture of a permutation test."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin import DWD, PermutationDisplay, permutation_test

pytest.importorskip("matplotlib")


def test_the_histogram_holds_all_permutations_and_the_line_is_at_the_statistic() -> None:
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 30)), np.tile([0, 1], 10)
    ax = Figure().subplots()
    display = PermutationDisplay.from_estimator(
        DWD(), X, y, ax=ax, n_permutations=50, random_state=0
    )
    assert sum(bar.get_height() for bar in display.bars_) == 50
    test = permutation_test(DWD(), X, y, n_permutations=50, random_state=0)
    assert display.line_.get_xdata()[0] == test.statistic
    assert display.ax_ is ax
    again = PermutationDisplay.from_test(test, ax=Figure().subplots())
    assert f"p = {test.pvalue:.3g}" in again.line_.get_label()
