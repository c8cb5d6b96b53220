"""The picture of average ranks."""

from __future__ import annotations

import pytest

from proxmargin import CriticalDifferenceDisplay
from proxmargin.stats import nemenyi
from tests.stats.tables import DEMSAR

pytest.importorskip("matplotlib")


def test_models_are_labelled_from_the_best_and_bars_join_the_groups() -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = CriticalDifferenceDisplay.from_scores(DEMSAR, alpha=0.1, ax=ax)
    result = nemenyi(DEMSAR, alpha=0.1)
    best = [text.get_text().split(" (")[0] for text in display.labels_]
    assert best == ["model 3", "model 1", "model 2", "model 0"]
    assert display.ax_ is ax
    ends = [tuple(bar.get_xdata()) for bar in display.bars_]
    assert len(ends) == len(result.groups()) == 2
    for (low, high), group in zip(ends, result.groups(), strict=True):
        assert low < result.average_ranks[list(group)].min()
        assert high > result.average_ranks[list(group)].max()
