"""Which features the models of the folds use: stability, signs, frequencies, weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["feature_rows", "selection_stability"]

Array = NDArray[np.float64]


def selection_stability(chosen: Sequence[Mapping[str, Any]], n_features: int) -> float:
    """Nogueira's measure of the stability of selected sets, at most 1; near 0 for random sets.

    ``1 - mean_f s_f^2 / (k/p (1 - k/p))``, with the unbiased variance ``s_f^2`` of feature f being
    selected, and k the mean size of the sets (Nogueira, Sechidis and Brown 2018, JMLR 18, 174).

    Parameters
    ----------
    chosen : sequence of dict
        The ``used`` of `Outcome`, one a fold.
    n_features : int

    Returns
    -------
    float
        NaN for a single set, and where all sets are empty or full: there is nothing to select.
    """
    count = len(chosen)
    if count < 2 or any(not each for each in chosen):
        return np.nan
    often = np.zeros(n_features)
    for each in chosen:
        often[_features(each, n_features)] += 1
    share = often / count
    mean = float(share.mean())
    if mean in (0.0, 1.0):
        return np.nan
    variance = count / (count - 1) * share * (1 - share)
    return float(1 - variance.mean() / (mean * (1 - mean)))


def feature_rows(
    final: Mapping[str, Any],
    chosen: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    scale: Sequence[float],
    classes: Sequence[str],
    limit: int,
) -> list[dict[str, Any]]:
    """The features that weigh most in a model fitted to all rows, and what the folds say of them.

    Parameters
    ----------
    final : dict
        The ``used`` of the fit to all rows.
    chosen : sequence of dict
        Those of the folds.

    Returns
    -------
    list of dict
        ``feature``; ``class``, for which a positive weight speaks: with more than two classes the
        one where the weight is largest in size; ``weight``, the coefficient times the standard
        deviation of the feature; ``sign``; ``frequency``, the share of the folds that use the
        feature; ``sign_agreement``, the share of these where its weight has the same sign.
    """
    if not final:
        return []
    features = _features(final, len(names))
    weights = np.array(final["weights"], np.float64) * np.asarray(scale)[features]
    rows = np.abs(weights).argmax(axis=0)
    largest = weights[rows, np.arange(features.size)]
    labels = classes[1:] if len(weights) == 1 else classes
    order = np.argsort(-np.abs(largest), kind="stable")[:limit]
    order = order[largest[order] != 0]
    often, agreeing = _in_folds(chosen, features[order], rows[order], largest[order], len(names))
    return [
        {
            "feature": str(names[features[j]]),
            "class": str(labels[rows[j]]),
            "weight": float(largest[j]),
            "sign": 1 if largest[j] > 0 else -1,
            "frequency": frequency,
            "sign_agreement": agreement,
        }
        for j, frequency, agreement in zip(order, often.tolist(), agreeing.tolist(), strict=True)
    ]


def _features(used: Mapping[str, Any], n_features: int) -> NDArray[np.intp]:
    listed = used["features"]
    return np.arange(n_features) if listed is None else np.array(listed, np.intp)


def _in_folds(
    chosen: Sequence[Mapping[str, Any]],
    features: NDArray[np.intp],
    rows: NDArray[np.intp],
    weights: Array,
    n_features: int,
) -> tuple[Array, Array]:
    """The share of the folds that use each feature, and of those the share with its sign."""
    used, same = np.zeros(features.size), np.zeros(features.size)
    told = [each for each in chosen if each]
    for each in told:
        coef = np.array(each["weights"], np.float64)
        place = np.full(n_features, -1)
        own = _features(each, n_features)
        place[own] = np.arange(own.size)
        at = place[features]
        live = at >= 0
        used += live
        found = coef[rows[live], at[live]] if live.any() else np.zeros(0)
        same[live] += np.sign(found) == np.sign(weights[live])
    shares = used / len(told) if told else np.full(features.size, np.nan)
    return shares, np.divide(same, used, out=np.full(used.size, np.nan), where=used > 0)
