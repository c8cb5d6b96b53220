"""Predictions of fitted linear models for data that are not one array in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.datasets import Chunk, Dataset
from proxmargin.designs.blocks.device import DEVICES, DeviceDesign, on_host
from proxmargin.inputs.beyond_memory import is_dask, namespace_of, predicting_chunks
from proxmargin.inputs.validation import ANY_SIZE
from proxmargin.runtime.optional import library_of

__all__ = ["accuracy", "predictions", "probabilities", "scores"]

Array = NDArray[np.float64]


def scores(estimator: Any, X: Any, offset: Any) -> Any:
    """`decision_function`: an iterator of arrays of a data set, a Dask array of Dask data."""
    if library_of(X) in DEVICES and not hasattr(estimator, "coef_"):
        return estimator.decision_function(on_host(X), offset)
    shift = _checked(estimator, offset)
    if isinstance(X, Dataset):
        chunks = predicting_chunks(estimator, X, ANY_SIZE)
        return (_scores_of(estimator, chunk) for chunk in chunks)
    if is_dask(X):
        outputs = len(estimator.coef_)
        columns = outputs if outputs > 1 else None
        method = partial(estimator.decision_function, offset=shift)
        return _mapped(X, method, np.dtype(float), columns)
    design = DeviceDesign.checked(X, namespace_of(X), ANY_SIZE.most)
    if design.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {design.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    found = design.scores(np.ascontiguousarray(estimator.coef_.T)) + estimator.intercept_
    return found[:, 0] if found.shape[1] == 1 else found


def predictions(estimator: Any, X: Any, offset: Any) -> Any:
    """`predict`, of the same kinds."""
    if is_dask(X):
        method = partial(estimator.predict, offset=_checked(estimator, offset))
        return _mapped(X, method, estimator.classes_.dtype, None)
    found = scores(estimator, X, offset)
    if isinstance(X, Dataset):
        return (estimator._labels_of(each) for each in found)
    return estimator._labels_of(found)


def probabilities(estimator: Any, X: Any, offset: Any, method: Callable[..., Any]) -> Any:
    """`predict_proba` or `predict_log_proba`, of the same kinds.

    Parameters
    ----------
    method : callable
        The one of the two, for blocks of Dask data.
    """
    if is_dask(X):
        of_block = partial(method, offset=_checked(estimator, offset))
        return _mapped(X, of_block, np.dtype(float), len(estimator.classes_))
    of_scores = (
        estimator._log_probabilities_of
        if method.__name__ == "predict_log_proba"
        else estimator._probabilities_of
    )
    found = scores(estimator, X, offset)
    return (of_scores(each) for each in found) if isinstance(X, Dataset) else of_scores(found)


def accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> float:
    """The weighted share of rows whose class `predict` finds."""
    from sklearn.metrics import accuracy_score  # imported late: it loads plotting code

    if not isinstance(X, Dataset):
        if y is None:
            raise ValueError("score requires y to be passed, but the target y is None")
        found = np.asarray(predictions(estimator, X, offset))
        labels = _in_memory(X, y, "y", found.size)
        weights = None
        if sample_weight is not None:
            weights = _in_memory(X, sample_weight, "sample_weight", found.size)
            _check_total(float(weights.sum()))
        return float(accuracy_score(labels, found, sample_weight=weights))
    if y is not None or sample_weight is not None:
        raise ValueError(
            "y and sample_weight must be left out for a data set on disk, which has its own"
        )
    _checked(estimator, offset)
    right = total = 0.0
    for chunk, labels in _labelled(estimator, X):
        weight = np.ones(labels.size) if chunk.weight is None else chunk.weight
        right += float(weight @ (labels == chunk.y))
        total += float(weight.sum())
    _check_total(total)
    return right / total


def _labelled(estimator: Any, X: Dataset) -> Iterator[tuple[Chunk, NDArray[Any]]]:
    for chunk in predicting_chunks(estimator, X, ANY_SIZE):
        if chunk.y is None:
            raise ValueError("the data set has no labels: open it with target=")
        yield chunk, estimator._labels_of(_scores_of(estimator, chunk))


def _scores_of(estimator: Any, chunk: Chunk) -> Array:
    found: Array = estimator._scores_of(chunk.X)
    return found[:, 0] if found.shape[1] == 1 else found


def _checked(estimator: Any, offset: Any) -> float | None:
    """The offset of each block: 0 for a model that was fitted with one, else None.

    Warns
    -----
    UserWarning
        The model was fitted with an offset, and none is given.
    """
    if offset is not None and not (np.ndim(offset) == 0 and offset == 0):
        raise ValueError("offset must be None or 0 for data that are not in memory")
    if not hasattr(estimator, "coef_"):
        raise ValueError("a model with a nonlinear kernel takes data in memory, block by block")
    if offset is None:
        estimator._warn_without_offset()
    return 0.0 if hasattr(estimator, "largest_offset_") else None


def _check_total(total: float) -> None:
    if not total > 0.0:
        raise ValueError(
            f"sample_weight must have a positive sum for an accuracy, and its sum is {total:g}"
        )


@dataclass(frozen=True, eq=False)
class _OfBlock:
    """A method of an estimator for a block, which may have no rows."""

    method: Callable[..., Any]
    empty: NDArray[Any]

    def __call__(self, block: Any) -> Any:
        return self.method(block) if block.shape[0] else self.empty


def _mapped(X: Any, method: Callable[..., Any], dtype: np.dtype[Any], columns: int | None) -> Any:
    """A method for each block of Dask data, with ``columns`` numbers a row, or one (None)."""
    empty = np.empty(0 if columns is None else (0, columns), dtype)
    of_block = _OfBlock(method, empty)
    if hasattr(X, "to_dask_array"):  # a data frame
        return X.map_partitions(of_block, meta=empty)
    X = X.rechunk({1: -1})
    if columns is not None:
        return X.map_blocks(of_block, dtype=dtype, chunks=(X.chunks[0], (columns,)), meta=empty)
    return X.map_blocks(of_block, dtype=dtype, drop_axis=1, meta=empty)


def _in_memory(X: Any, values: Any, name: str, count: int) -> NDArray[Any]:
    """Labels or weights of rows that are on workers or a device."""
    if is_dask(X):
        from proxmargin.designs.blocks.dask_blocks import gathered

        return gathered(values, name, count)
    return on_host(values)
