"""Data that are not one array in memory: data sets on disk, Dask collections, device arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from proxmargin.data.datasets import Chunk, Dataset
from proxmargin.data.designs.blocks import BlockedDesign, scanned
from proxmargin.data.designs.blocks.device import DEVICES, DeviceDesign, on_host
from proxmargin.data.designs.samples import bad_entry, canonical, sentence
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.validation import Magnitudes, magnitudes_for
from proxmargin.runtime.optional import library_of
from proxmargin.runtime.types import Array, Estimator, Values


class Opened(NamedTuple):
    """Data with their design, labels and weights in memory."""

    design: BlockedDesign
    y: Values
    weight: Array | None


def is_beyond_memory(X: Features) -> bool:
    """Whether these are no data in memory."""
    return _opener(X) is not None


def opened(estimator: Estimator, X: Features, y: object, sample_weight: object) -> Opened:
    """The data of a fit, read once: checked, with their labels. Raises ValueError: entries that are
    not finite numbers or leave the range of float64, with the place; labels that are missing, given
    twice, or not classes."""
    opener = _opener(X)
    assert opener is not None
    found = opener(estimator, X, y, sample_weight)
    check_classification_targets(found.y)
    allowed = magnitudes_for(estimator)
    largest = float(found.design.column_bounds().max(initial=0.0))
    if 0.0 < largest < allowed.least:
        raise ValueError(
            f"X contains nothing larger than {largest:g}, below {allowed.least:g}, where products "
            f"underflow: {allowed.advice(largest)}"
        )
    return found


def _opener(X: Features) -> Callable[..., Opened] | None:
    if isinstance(X, Dataset):
        return _open_dataset
    if is_dask(X):
        return _open_dask
    return _open_device if library_of(X) in DEVICES else None


def is_dask(X: Features) -> bool:
    """Whether these are a Dask array, data frame or series."""
    return library_of(X) == "dask"


def _open_dataset(estimator: Estimator, X: Dataset, y: Labels, sample_weight: ArrayLike) -> Opened:
    if y is not None:
        raise ValueError("y must be left out for a data set on disk: its target has the labels")
    _note_features(estimator, X.n_features, X.feature_names)
    allowed, names = magnitudes_for(estimator), X.feature_names
    found = scanned(X, partial(checked_chunk, allowed=allowed, names=names))
    if found.y is None:
        raise ValueError("the data set has no labels: open it with target=")
    if found.weight is not None and sample_weight is not None:
        raise ValueError("sample_weight must be left out: the data set has a column of weights")
    weight = sample_weight if found.weight is None else found.weight
    return Opened(found.design, found.y, weight)


def _open_dask(estimator: Estimator, X: Values, y: Values, sample_weight: ArrayLike) -> Opened:
    from proxmargin.data.designs.blocks.dask_blocks import gathered, on_workers

    _require_labels(y)
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    design = on_workers(X, magnitudes_for(estimator).most)
    _note_features(estimator, design.n_features, names)
    labels = gathered(y, "y", design.n_samples)
    weight = (
        None if sample_weight is None else gathered(sample_weight, "sample_weight", labels.size)
    )
    return Opened(design, labels, weight)


def _open_device(estimator: Estimator, X: Values, y: Values, sample_weight: ArrayLike) -> Opened:
    _require_labels(y)
    design = DeviceDesign.checked(X, magnitudes_for(estimator).most)
    _note_features(estimator, design.n_features, None)
    labels = on_host(y)
    if labels.shape != (design.n_samples,):
        raise ValueError(
            f"y must hold one label a row, ({design.n_samples},) here, got shape {labels.shape}"
        )
    return Opened(design, labels, None if sample_weight is None else on_host(sample_weight))


def _require_labels(y: Labels) -> None:
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")


def _note_features(estimator: Estimator, count: int, names: tuple[str, ...] | None) -> None:
    """Set what scikit-learn's estimators know of the features."""
    estimator.n_features_in_ = count
    for name in ("feature_names_in_", "_column_labels"):
        estimator.__dict__.pop(name, None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def checked_chunk(chunk: Chunk, allowed: Magnitudes, names: tuple[str, ...] | None = None) -> Chunk:
    """The chunk in canonical form; raises ValueError for the first entry that is no number of
    modest size, with file, row and column."""
    is_sparse: bool = sparse.issparse(chunk.X)
    if is_sparse:  # compiled code reads what the indices of a file say, wherever that is
        try:
            chunk.X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{chunk.where} holds no CSR matrix: {error}") from error
    X = canonical(chunk.X) if is_sparse else chunk.X
    bad = bad_entry(X, allowed.most)
    if bad is not None:
        name = names[bad.column] if names else None
        bad = bad._replace(row=chunk.first + bad.row)
        entries = X.data if is_sparse else X
        advice = allowed.advice(max(-float(entries.min()), float(entries.max())))
        raise ValueError(sentence(bad, allowed.most, place=chunk.where, name=name, advice=advice))
    if chunk.weight is not None and not np.all(np.isfinite(chunk.weight)):
        row = int(np.argmin(np.isfinite(chunk.weight)))
        raise ValueError(
            f"the weight in {chunk.where}, row {chunk.first + row} (counted from 0), is not finite"
        )
    if chunk.y is not None and chunk.y.dtype.kind == "f" and not np.all(np.isfinite(chunk.y)):
        row = int(np.argmin(np.isfinite(chunk.y)))
        raise ValueError(
            f"the label in {chunk.where}, row {chunk.first + row} (counted from 0), is not finite"
        )
    return chunk._replace(X=X)


def predicting_chunks(estimator: Estimator, X: Dataset, allowed: Magnitudes) -> Iterator[Chunk]:
    """The checked chunks of a data set for a fitted estimator, with the features of its fit."""
    if X.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and X.feature_names is not None and tuple(known) != X.feature_names:
        raise ValueError("the data set has other features than the fit, or in another order")
    return (checked_chunk(chunk, allowed, X.feature_names) for chunk in X.chunks())
