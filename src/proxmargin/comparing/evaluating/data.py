"""The samples of a comparison, validated once and then split by rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.inputs.aligned import by_sample
from proxmargin.inputs.preprocessing import fitted_transformer

__all__ = ["LabelledRows"]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Samples with labels, weights and groups.

    Attributes
    ----------
    X : (n_samples, n_features) array or CSR matrix
    y : (n_samples,)
    weights : (n_samples,) > 0, or None
    names : (n_features,) or None
        Of the features, where the caller gave a data frame.
    groups : (n_samples,) or None
        Samples of one group are never on both sides of a split.
    numbers : (n_samples,) or None
        Row numbers in the caller's data; None if all rows are here.
    preprocess : transformer, optional
        Not fitted. X is then as the caller gave it, until `prepared` transforms it.
    outputs : tuple of str
        Names of the features that the transformer returns when it is fitted to all rows.
    """

    X: Any
    y: NDArray[Any]
    weights: NDArray[Any] | None = None
    names: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    numbers: NDArray[np.intp] | None = None
    preprocess: Any = None
    outputs: tuple[str, ...] = ()

    @classmethod
    def checked(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        preprocess: Any = None,
    ) -> LabelledRows:
        """The caller's data as the estimators use them; samples of weight zero are left out.

        Raises
        ------
        ValueError
            They are no data for classification; the message says why.
        """
        from proxmargin.inputs.validation import validated, validated_weights

        if y is None:
            raise ValueError("y must be the labels of the samples, got None")
        sample_weight = by_sample("sample_weight", sample_weight, X)
        groups = by_sample("groups", groups, X)
        _refuse_measurements(y)
        if preprocess is not None:
            # the models' checks are for what the transformer returns
            validated(estimator, fitted_transformer(preprocess, X, y).transform(X), y)
            X = X if hasattr(X, "iloc") or hasattr(X, "tocsr") else np.asarray(X)
            y = np.asarray(y)
        else:
            with names_the_way_out():
                X, y = validated(estimator, X, y)
        weights = validated_weights(sample_weight, X)
        # rows are taken out again and again, which only CSR does fast among the sparse formats
        X = X.tocsr() if hasattr(X, "tocsr") else X
        if preprocess is None:
            names = getattr(estimator, "feature_names_in_", None)
        else:
            names = np.array([str(name) for name in X.columns]) if hasattr(X, "iloc") else None
        members = _checked_groups(groups, X.shape[0])
        data = cls(X, y, weights, names, members, preprocess=preprocess)
        if weights is None or weights.all():
            return data
        kept = weights.nonzero()[0]
        return replace(data.rows(kept), numbers=kept)

    def named(self, names: Sequence[str]) -> LabelledRows:
        """The same samples with these names of the features."""
        if len(names) != self.n_features:
            raise ValueError(
                f"{len(names)} feature_names were given for {self.n_features} features"
            )
        repeated = [name for name, count in Counter(map(str, names)).items() if count > 1]
        if repeated:
            raise ValueError(
                f"feature_names: {repeated[0]!r} is the name of several features: give each its own"
            )
        return replace(self, names=np.array([str(name) for name in names], dtype=object))

    def rows(self, index: NDArray[np.intp]) -> LabelledRows:
        """Some of the samples."""
        weights = None if self.weights is None else self.weights[index]
        groups = None if self.groups is None else self.groups[index]
        X = self.X.iloc[index] if hasattr(self.X, "iloc") else self.X[index]
        return replace(self, X=X, y=self.y[index], weights=weights, groups=groups)

    def prepared(self) -> tuple[LabelledRows, Any]:
        """These samples as models see them, and the transformer, fitted to them alone."""
        if self.preprocess is None:
            return self, None
        transformer = fitted_transformer(self.preprocess, self.X, self.y)
        return self.transformed(transformer), transformer

    def transformed(self, transformer: Any) -> LabelledRows:
        """These samples as a fitted transformer returns them; None leaves them as they are."""
        if transformer is None:
            return self
        X = transformer.transform(self.X)
        X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, np.float64)
        if not np.isfinite(X.data if hasattr(X, "tocsr") else X).all():
            raise ValueError("preprocess leaves entries that are not finite numbers")
        return replace(self, X=X, preprocess=None, outputs=self._names_after(transformer, X))

    def _names_after(self, transformer: Any, X: Any) -> tuple[str, ...]:
        """Names of the features that the transformer returns."""
        given = [f"x{j}" for j in range(self.n_features)] if self.names is None else self.names
        try:
            return tuple(map(str, transformer.get_feature_names_out(np.array(given, object))))
        except (AttributeError, ValueError):
            same = X.shape[1] == self.n_features
            return tuple(map(str, given if same else (f"f{j}" for j in range(X.shape[1]))))

    def seen(self) -> LabelledRows:
        """All samples as a report shows them: with the names of the transformed features."""
        ready, transformer = self.prepared()
        return self if transformer is None else replace(ready, names=np.array(ready.outputs))

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        return hasattr(self.X, "tocsr")

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weights of the samples; ones by default."""
        return np.ones(self.n_samples) if self.weights is None else self.weights


@contextmanager
def names_the_way_out() -> Iterator[None]:
    """An error about blanks says what fills them in."""
    try:
        yield
    except ValueError as error:
        if "NaN" not in str(error):
            raise
        raise ValueError(
            f"{error}; preprocess=SimpleImputer(), of sklearn.impute, fills in missing entries "
            "from the training rows of each fold (on the command line: --impute median)"
        ) from error


def _refuse_measurements(y: Any) -> None:
    """Raise ValueError for labels that are measurements, and say what to do."""
    from sklearn.utils.multiclass import type_of_target

    values = np.asarray(y)
    if values.dtype.kind != "f" or values.ndim != 1 or not np.isfinite(values).all():
        return  # what else is wrong is told by the validation
    if type_of_target(values) == "continuous":
        raise ValueError(
            f"the target holds measurements ({np.unique(values).size} different numbers such as "
            f"{values[values % 1 != 0][0]:g}), and compare is for classes: name another column "
            "(target=NAME), or make classes of it first, e.g. y > numpy.median(y)"
        )


def _checked_groups(groups: Any, n_samples: int) -> NDArray[Any] | None:
    if groups is None:
        return None
    column = np.asarray(groups)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n_samples,):
        raise ValueError(
            f"groups must be one label a sample, ({n_samples},) here, got an array of shape "
            f"{column.shape}"
        )
    missing = [each is None or each != each for each in column.tolist()]
    if any(missing):
        raise ValueError(f"groups: row {missing.index(True)} (counted from 0) has no group")
    return np.unique(column.astype(str) if column.dtype == object else column, return_inverse=True)[
        1
    ]
