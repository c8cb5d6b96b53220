"""Predictions of fitted linear models for data that are not one array in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.datasets import Chunk, Dataset
from proxmargin.inputs.beyond_memory import namespace_of, predicting_chunks
from proxmargin.inputs.validation import ANY_SIZE

__all__ = ["accuracy", "predictions", "scores"]

Array = NDArray[np.float64]


def scores(estimator: Any, X: Any, offset: Any) -> Any:
    """`decision_function`: an iterator of arrays of a data set, a Dask array of Dask data."""
    _check(estimator, offset)
    if isinstance(X, Dataset):
        chunks = predicting_chunks(estimator, X, ANY_SIZE)
        return (_scores_of(estimator, chunk) for chunk in chunks)
    if type(X).__module__.partition(".")[0] == "dask":
        return _mapped(estimator, X, estimator.decision_function, np.dtype(float))
    from proxmargin.designs.blocks.device import DeviceDesign

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
    if not isinstance(X, Dataset) and type(X).__module__.partition(".")[0] == "dask":
        _check(estimator, offset)
        return _mapped(estimator, X, estimator.predict, estimator.classes_.dtype)
    found = scores(estimator, X, offset)
    if isinstance(X, Dataset):
        return (estimator._labels_of(each) for each in found)
    return estimator._labels_of(found)


def accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> float:
    """The weighted share of rows whose class `predict` finds."""
    from sklearn.metrics import accuracy_score  # imported late: it loads plotting code

    if not isinstance(X, Dataset):
        found = np.asarray(predictions(estimator, X, offset))
        return float(accuracy_score(_in_memory(y), found, sample_weight=_in_memory(sample_weight)))
    if y is not None or sample_weight is not None:
        raise ValueError(
            "y and sample_weight must be left out for a data set on disk, which has its own"
        )
    _check(estimator, offset)
    right = total = 0.0
    for chunk, labels in _labelled(estimator, X):
        weight = np.ones(labels.size) if chunk.weight is None else chunk.weight
        right += float(weight @ (labels == chunk.y))
        total += float(weight.sum())
    return right / total


def _labelled(estimator: Any, X: Dataset) -> Iterator[tuple[Chunk, NDArray[Any]]]:
    for chunk in predicting_chunks(estimator, X, ANY_SIZE):
        if chunk.y is None:
            raise ValueError("the data set has no labels: open it with target=")
        yield chunk, estimator._labels_of(_scores_of(estimator, chunk))


def _scores_of(estimator: Any, chunk: Chunk) -> Array:
    found: Array = estimator._scores_of(chunk.X)
    return found[:, 0] if found.shape[1] == 1 else found


def _check(estimator: Any, offset: Any) -> None:
    if offset is not None:
        raise ValueError("offset must be None for data that are not in memory")
    if not hasattr(estimator, "coef_"):
        raise ValueError("a model with a nonlinear kernel takes data in memory, block by block")


def _mapped(estimator: Any, X: Any, method: Any, dtype: np.dtype[Any]) -> Any:
    """A method of the estimator for each block of Dask data."""
    if hasattr(X, "to_dask_array"):  # a data frame
        return X.map_partitions(method, meta=np.empty(0, dtype))
    X = X.rechunk({1: -1})
    outputs = len(estimator.coef_)
    if method.__name__ == "decision_function" and outputs > 1:
        return X.map_blocks(method, dtype=dtype, chunks=(X.chunks[0], (outputs,)))
    return X.map_blocks(method, dtype=dtype, drop_axis=1)


def _in_memory(values: Any) -> Any:
    return values.compute() if hasattr(values, "compute") else values
