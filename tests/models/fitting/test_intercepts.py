"""Intercepts that the objective does not determine."""

import numpy as np
import pytest
from numpy.typing import NDArray

from proxmargin import MarginFDA, MarginMPM
from proxmargin.compiled.rounding import Enclosed
from proxmargin.losses import MinimaxFisher
from proxmargin.models.classifiers.minimax import training_error

Array = NDArray[np.float64]

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def repeated(seed: int) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
    """Samples that repeat four rows, their classes, and the row of each."""
    rng = np.random.default_rng(seed)
    row = rng.integers(0, 4, 60)
    classes = (rng.random(60) < np.array([0.2, 0.45, 0.55, 0.8])[row]).astype(int)
    return CORNERS[row], classes, row


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("model", [MarginFDA, MarginMPM])
def test_no_threshold_parts_identical_samples(model: type, kernel: str) -> None:
    for seed in range(8):
        X, y, row = repeated(seed)
        fitted = model(kernel=kernel, kappa=0.1).fit(X, y)
        scores = fitted.decision_function(X) - fitted.intercept_[0]
        level = np.array([scores[row == k].mean() for k in range(4)])
        cuts = np.concatenate([[-np.inf], np.sort(level)])
        least = min(int(((level[row] > cut) != (y == 1)).sum()) for cut in cuts)
        said = fitted.predict(X)
        assert (said != y).sum() == least
        assert all(np.unique(said[row == k]).size == 1 for k in range(4))


def test_scores_closer_than_their_rounding_are_one_score() -> None:
    signs = np.array([-1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    scores = np.array([0.0, 1.0, 1.0 + 4e-16, 1.0 - 3e-16, 1.0 + 5e-16, 2.0])[:, None]
    loss = MinimaxFisher(signs, np.full(6, 1 / 6), 0.5)
    enclosed = Enclosed(scores, np.full((6, 1), 1e-15), np.abs(scores))
    assert training_error(loss, enclosed) == pytest.approx(-0.5, abs=1e-14)


def test_the_lowest_of_equally_wide_intervals() -> None:
    """Whatever the order of the samples, and though their widths differ by rounding."""
    signs = np.array([-1.0, 1.0, -1.0, 1.0])
    scores = np.array([0.0, 1.0, 2.0, 3.0 + 4e-16])
    for order in ([0, 1, 2, 3], [3, 1, 2, 0], [2, 3, 0, 1]):
        loss = MinimaxFisher(signs[order], np.full(4, 0.25), 0.5)
        values = scores[order][:, None]
        found = training_error(loss, Enclosed(values, np.full((4, 1), 1e-15), np.abs(values)))
        assert found == -0.5
