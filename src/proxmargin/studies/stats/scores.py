"""Tables of scores, as users hold them: arrays, or frames whose columns name the models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from proxmargin.compiled.rounding import levels

CONFIDENCE: Final = 0.95  # of intervals; tests are at the level 1 - CONFIDENCE
# in units of a score: smaller differences do not matter in practice (Corani and Benavoli 2015)
ROPE: Final = 0.01


def percent(share: float) -> str:
    """``95 %`` for 0.95."""
    return f"{100 * share:.3g} %"


INTERVAL: Final = f"{percent(CONFIDENCE)} interval"  # its name in tables and charts


Floats = NDArray[np.float64]

SAME = 1e-12  # scores closer than this, relative to the largest of their row, are equal
LEAST_ROWS = 2
LARGEST = np.finfo(np.float64).max / 4  # so that differences of scores do not overflow


class Differences(NamedTuple):
    """Scores of each model minus those of each other one, (n_models, n_models, n_rows)."""

    values: Floats  # zero where two scores are equal but for rounding
    rounding: Floats  # differences are known up to this, relative to the larger of both scores


@dataclass(frozen=True)
class ScoreTable:
    """Scores of models, a row for a data set or a fold, and a column for a model."""

    values: Floats  # (n_rows, n_models)
    labels: tuple[Any, ...]  # of the columns, as given

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.labels)

    def ranks(self, higher_is_better: bool) -> Floats:
        """Ranks within each row, (n_rows, n_models): 1 is the best, ties share their average."""
        rounding = SAME * np.abs(self.values).max(axis=1, keepdims=True)
        return ranks_with_ties(-self.values if higher_is_better else self.values, rounding)

    def differences(self) -> Differences:
        columns = self.values.T
        sizes = np.abs(columns)
        rounding = SAME * np.maximum(sizes[:, None], sizes[None])
        values = columns[:, None] - columns[None]
        return Differences(np.where(np.abs(values) <= rounding, 0.0, values), rounding)

    def index(self, model: str | int | None) -> int:
        """The column of a model: of its name, or counted where no column has a number for a name.

        None is the first.

        Raises ValueError: no such model.
        """
        if model is None:
            return 0
        if isinstance(model, str) and model in self.names:
            return self.names.index(model)
        if _is_integer(model):
            if model in self.labels:
                return self.labels.index(model)
            if not any(map(_is_integer, self.labels)) and 0 <= int(model) < len(self.labels):
                return int(model)
        raise ValueError(f"control={model!r} is no model: they are {', '.join(self.names)}")


def ranks_with_ties(values: Floats, rounding: Floats) -> Floats:
    """Ranks along the last axis, from the lowest; values closer than their rounding are tied.

    ``values``: (..., n). ``rounding``: broadcasts to (..., n), two values are equal if they differ
    by no more than the larger of their roundings; so are values joined by a chain of equal ones.
    Returns (..., n) ranks, 1 for the lowest; ties share their average.
    """
    return np.asarray(rankdata(levels(values, rounding), axis=-1))


def read_scores(scores: ArrayLike) -> ScoreTable:
    """A checked table.

    ``scores``: (n_rows, n_models) array, or a frame whose columns name the models. Raises
    ValueError: not two-dimensional, fewer than two models or two rows, not real, not finite, or
    above a quarter of the largest number; two columns of the same name.
    """
    values = read_numbers(scores, "scores")
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(
            "scores must have a row for each data set or fold and a column for each of two models "
            f"or more; its shape is {values.shape}"
        )
    if values.shape[0] < LEAST_ROWS:
        raise ValueError(f"scores has {values.shape[0]} rows: at least {LEAST_ROWS} are needed")
    usable = np.abs(values) <= LARGEST
    if not usable.all():
        row, column = np.argwhere(~usable)[0]
        raise ValueError(f"scores is {values[row, column]} in row {row}, column {column}")
    labels = getattr(scores, "columns", None)
    if labels is None:
        return ScoreTable(values, tuple(f"model {each}" for each in range(values.shape[1])))
    table = ScoreTable(values, tuple(labels))
    repeated = [name for name, count in Counter(table.names).items() if count > 1]
    if repeated:
        raise ValueError(f"scores has several columns of the same name: {', '.join(repeated)}")
    return table


def read_numbers(values: ArrayLike, name: str) -> Floats:
    """Real numbers, in double precision. Raises ValueError: not real numbers, rows of different
    lengths, or masked entries."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has masked entries, and every entry counts: leave out their rows or columns"
        )
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise TypeError("they are complex")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be real numbers: {error}") from error


def check_fraction(name: str, value: float, hint: str = "") -> float:
    """A number strictly between 0 and 1. Raises ValueError: it is not; ``hint`` ends the
    message."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < value < 1.0:
        raise ValueError(f"{name}={value!r} must be a number between 0 and 1{hint}")
    return float(value)


def check_flag(name: str, value: bool) -> bool:
    """True or False, and nothing that only looks like it: the string "no" is true in Python. Raises
    ValueError: neither."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} must be True or False")
    return bool(value)


def pairs_frame(names: Sequence[str], **columns: Floats) -> Any:
    """A frame with a row for each pair of models, of matrices over pairs. Raises ImportError:
    pandas is not installed."""
    import pandas as pd

    first, second = np.triu_indices(len(names), 1)
    labels = np.asarray(names, dtype=object)
    parts = {name: matrix[first, second] for name, matrix in columns.items()}
    return pd.DataFrame({"first": labels[first], "second": labels[second], **parts})


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
