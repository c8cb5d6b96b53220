"""What the folds of a search have found, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.selection.folds import Data, Fold, Judged

__all__ = ["out_of_fold"]

Array = NDArray[np.float64]


def out_of_fold(
    data: Data, folds: list[Fold], shape: tuple[int, ...], results: list[Judged]
) -> Array:
    """Held-out scores of each row, by models of the folds that do not train on it.

    The mean if a row was held out several times; NaN if never.
    """
    outputs = results[0].decisions[0].shape[2:]
    total = np.zeros((*shape, data.targets.codes.size, *outputs))
    times = np.zeros(data.targets.codes.size)
    for fold, result in zip(folds, results, strict=True):
        total[:, :, fold.test] += np.stack(result.decisions)
        times[fold.test] += 1
    times[times == 0] = np.nan
    return total / times.reshape(-1, *[1 for _ in outputs])
