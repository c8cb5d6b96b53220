"""The samples of a comparison, validated once and then split by rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Data"]


@dataclass(frozen=True, eq=False)
class Data:
    """Samples with labels and weights.

    Attributes
    ----------
    X : (n_samples, n_features) array or CSR matrix
    y : (n_samples,)
    weights : (n_samples,) > 0, or None
    names : (n_features,) or None
        Of the features, where the caller gave a data frame.
    """

    X: Any
    y: NDArray[Any]
    weights: NDArray[Any] | None
    names: NDArray[Any] | None = None

    @classmethod
    def checked(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Data:
        """The caller's data as the estimators use them; samples of weight zero are left out.

        Raises
        ------
        ValueError
            They are no data for classification; the message says why.
        """
        from proxmargin.inputs.validation import validated, validated_weights

        X, y = validated(estimator, X, y)
        weights = validated_weights(sample_weight, X)
        # rows are taken out again and again, which only CSR does fast among the sparse formats
        X = X.tocsr() if hasattr(X, "tocsr") else X
        data = cls(X, y, weights, getattr(estimator, "feature_names_in_", None))
        return data if weights is None else data.rows(weights.nonzero()[0])

    def named(self, names: Sequence[str]) -> Data:
        """The same samples with these names of the features."""
        if len(names) != self.n_features:
            raise ValueError(
                f"{len(names)} feature_names were given for {self.n_features} features"
            )
        return replace(self, names=np.array([str(name) for name in names], dtype=object))

    def rows(self, index: NDArray[Any]) -> Data:
        """Some of the samples."""
        weights = None if self.weights is None else self.weights[index]
        return replace(self, X=self.X[index], y=self.y[index], weights=weights)

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])
