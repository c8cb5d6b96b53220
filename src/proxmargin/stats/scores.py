"""Tables of scores, as users hold them: arrays, or frames whose columns name the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

__all__ = ["Floats", "ScoreTable", "check_share", "pairs_frame", "read_scores"]

Floats = NDArray[np.float64]

SAME = 12  # decimals, relative to the largest score, to which equal differences agree


@dataclass(frozen=True)
class ScoreTable:
    """Scores of models, a row for a data set or a fold, and a column for a model.

    Attributes
    ----------
    values : (n_rows, n_models)
    names : of the models
    """

    values: Floats
    names: tuple[str, ...]

    def ranks(self, higher_is_better: bool) -> Floats:
        """Ranks within each row, (n_rows, n_models): 1 is the best, ties share their average."""
        values = _rounded(self.values, np.abs(self.values).max())
        return np.asarray(rankdata(-values if higher_is_better else values, axis=1))

    def differences(self) -> Floats:
        """Each model minus each other one, (n_models, n_models, n_rows).

        Differences that agree but for the rounding of the subtraction are equal: 92.9 - 92.8 and
        92.8 - 92.7 are not, in double precision.
        """
        columns = self.values.T
        return _rounded(columns[:, None] - columns[None], np.abs(columns).max())

    def index(self, model: str | int) -> int:
        """The column of a model, named or counted.

        Raises
        ------
        ValueError
            No such model.
        """
        if isinstance(model, str) and model in self.names:
            return self.names.index(model)
        if isinstance(model, int | np.integer) and 0 <= model < len(self.names):
            return int(model)
        raise ValueError(f"control={model!r} is no model: they are {', '.join(self.names)}")


def read_scores(scores: ArrayLike, *, least_rows: int = 2) -> ScoreTable:
    """A checked table.

    Parameters
    ----------
    scores : (n_rows, n_models) array, or a frame whose columns name the models
    least_rows : int

    Raises
    ------
    ValueError
        Not two-dimensional, fewer than two models or ``least_rows`` rows, or not finite.
    """
    names = getattr(scores, "columns", None)
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scores must be numbers: {error}") from error
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(
            "scores must have a row for each data set or fold and a column for each of two models "
            f"or more; its shape is {values.shape}"
        )
    if values.shape[0] < least_rows:
        raise ValueError(f"scores has {values.shape[0]} rows: at least {least_rows} are needed")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"scores is {values[row, column]} in row {row}, column {column}")
    if names is None:
        names = [f"model {number}" for number in range(values.shape[1])]
    return ScoreTable(values, tuple(str(name) for name in names))


def check_share(test_share: float) -> float:
    """The share of the samples that is tested in each fold.

    Raises
    ------
    ValueError
        Not between 0 and 1.
    """
    if not 0.0 < test_share < 1.0:
        raise ValueError(
            f"test_share={test_share!r} must lie between 0 and 1: it is 1 / k for k folds"
        )
    return float(test_share)


def pairs_frame(names: Sequence[str], **columns: Floats) -> Any:
    """A frame with a row for each pair of models, of matrices over pairs.

    Raises
    ------
    ImportError
        pandas is not installed.
    """
    import pandas as pd

    first, second = np.triu_indices(len(names), 1)
    labels = np.asarray(names, dtype=object)
    parts = {name: matrix[first, second] for name, matrix in columns.items()}
    return pd.DataFrame({"first": labels[first], "second": labels[second], **parts})


def _rounded(values: Floats, largest: float) -> Floats:
    return np.round(values / largest, SAME) * largest if largest > 0 else values
