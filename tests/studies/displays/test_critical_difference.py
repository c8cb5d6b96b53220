"""The picture of average ranks."""

from __future__ import annotations

import pytest

from proxmargin import CriticalDifferenceDisplay
from proxmargin.stats import nemenyi
from tests.studies.stats.tables import DEMSAR

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


def test_labels_are_outside_the_ranks_whatever_their_length() -> None:
    pandas = pytest.importorskip("pandas")
    from matplotlib.figure import Figure

    names = [f"a model with a long name, number {number}" for number in range(4)]
    figure = Figure(layout="constrained")
    display = CriticalDifferenceDisplay.from_scores(
        pandas.DataFrame(DEMSAR, columns=names), ax=figure.subplots()
    )
    figure.draw_without_rendering()
    low, high = (display.ax_.transData.transform((rank, 0.0))[0] for rank in (1.0, 4.0))
    for label in display.labels_:
        box = label.get_window_extent()
        assert box.x1 < low or box.x0 > high
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
