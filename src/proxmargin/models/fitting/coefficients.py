"""The coefficients of a linear model: a table of them by size, and the features that it uses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from proxmargin.data.designs import as_design, moments
from proxmargin.data.designs.blocks.device import in_memory
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.beyond_memory import is_beyond_memory
from proxmargin.data.inputs.kinds import Features
from proxmargin.data.inputs.validation import validated_features, validated_weights
from proxmargin.models.fitting.bases import TransformerMixin
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Array, Estimator, Index, Values

if TYPE_CHECKING:
    import pandas as pd

    from proxmargin.optimality.certificates.certificate import Certificate, CertificateList
    from proxmargin.solvers.callbacks import History


class Coefficient(NamedTuple):
    """One coefficient, of the class for which positive values of it speak."""

    feature: object
    label: Any
    coefficient: float
    per_deviation: float


@dataclass(frozen=True, eq=False)
class Ranked:
    """The coefficients of a linear model, ranked within each class by size.

    Sizes are those per standard deviation where the deviations are known, else those in the units
    of the data.
    """

    # (n_rows, n_features): In the units of the data; one row of two classes, which is that of the
    # second
    coef: Array
    # (n_features,): Standard deviations of the features; infinite or zero for constant ones
    deviations: Array | None
    names: Values  # (n_features,)
    classes: Values  # (n_classes,)

    @classmethod
    def of(cls, model: Estimator, deviations: Array | None = None) -> Self:
        """Those of a fitted linear model, with its own deviations unless others are given."""
        known = getattr(model, "feature_scale_", None) if deviations is None else deviations
        names = getattr(model, "feature_names_in_", np.arange(model.coef_.shape[1]))
        return cls(model.coef_, known, names, model.classes_)

    @property
    def per_deviation(self) -> Array:
        """Coefficients of features with unit variance; NaN where the deviations are not known."""
        if self.deviations is None:
            return np.full(self.coef.shape, np.nan)
        finite = np.where(np.isfinite(self.deviations), self.deviations, 0.0)
        return np.asarray(self.coef * finite, np.float64)

    @property
    def sizes(self) -> Array:
        """What ranks the coefficients."""
        return np.abs(self.coef if self.deviations is None else self.per_deviation)

    def order(self, zeros: bool = False) -> tuple[Index, Index, Index]:
        """Rows, features and ranks (from 1 in each row), class by class, the largest first."""
        kept = np.ones(self.coef.shape, bool) if zeros else self.coef != 0
        rows, features = np.nonzero(kept)
        order = np.lexsort((features, -self.sizes[rows, features], rows))
        rows, features = rows[order], features[order]
        counts = np.count_nonzero(kept, axis=1)
        ranks = 1 + np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, features, ranks.astype(np.intp)

    def label(self, row: int) -> Any:
        """The class for which positive coefficients of a row speak."""
        return self.classes[1] if len(self.coef) == 1 else self.classes[row]

    def top(self, count: int) -> list[Coefficient]:
        """The largest coefficients of all classes, at most ``count``."""
        rows, features, _ = self.order()
        scaled = self.per_deviation
        largest = np.argsort(-self.sizes[rows, features], kind="stable")[:count]
        return [
            Coefficient(
                self.names[feature],
                self.label(row),
                float(self.coef[row, feature]),
                float(scaled[row, feature]),
            )
            for row, feature in zip(rows[largest], features[largest], strict=True)
        ]

    def frame(self, zeros: bool) -> pd.DataFrame:
        """The table of `HasCoefficients.coefficients`."""
        pandas = optional("pandas", "a table of coefficients")
        rows, features, ranks = self.order(zeros)
        frame: pd.DataFrame = pandas.DataFrame(
            {
                "feature": self.names[features],
                "class": [self.label(row) for row in rows.tolist()],
                "coefficient": self.coef[rows, features],
                "coefficient_per_sd": self.per_deviation[rows, features],
                "rank": ranks,
            }
        )
        return frame


class HasCoefficients:
    """Adds a table of coefficients to a classifier; kernel machines with a nonlinear kernel refuse.

    ``feature_scale_``, the standard deviations of the training features, is published by fits with
    ``standardize=True`` alone, which compute them anyway.
    """

    coef_: Array
    intercept_: Array
    classes_: Values
    certificate_: Certificate | CertificateList
    n_iter_: int
    feature_scale_: Array
    largest_offset_: float
    history_: History

    def coefficients(
        self,
        X: Features | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        zeros: bool = False,
    ) -> pd.DataFrame:
        """The coefficients as a data frame: class by class, the largest first.

        Parameters
        ----------
        X : (n_samples, n_features), optional
            Data whose standard deviations are taken. Without it they are those of the training
            data, which a fit with ``standardize=True`` has kept (another one has none: they would
            cost it a pass over the data).
        sample_weight : (n_samples,), optional
            Weights of the samples of ``X``.
        zeros : bool, default False
            Whether features without a coefficient have a row, too.

        Returns
        -------
        pandas.DataFrame
            A row for each class and feature; of two classes for the second, for which positive
            coefficients speak. ``frame.to_csv(path, index=False)`` writes it.

            - ``feature``: the name, or the number from 0 where the data had no names
            - ``class``
            - ``coefficient``: in the units of the data
            - ``coefficient_per_sd``: times the standard deviation of the feature, which compares
              features in different units; NaN where it is not known
            - ``rank``: within the class, 1 for the largest ``|coefficient_per_sd|``, or the largest
              ``|coefficient|`` where the deviations are not known

        Raises
        ------
        NotFittedError
        TypeError
            A nonlinear kernel has no coefficients.
        ValueError
            ``X`` are no data of the model.
        ImportError
            pandas is not installed.
        """
        model = linear_model_of(self)
        deviations = None if X is None else _deviations(model, X, sample_weight)
        return Ranked.of(model, deviations).frame(zeros)


def linear_model_of(estimator: Estimator) -> Estimator:
    """The fitted model with the coefficients: itself, or the one that cross-validation chose."""
    check_is_fitted(estimator)
    model = getattr(estimator, "best_estimator_", estimator)
    if not hasattr(model, "coef_"):
        kernel = getattr(model, "kernel", None)
        raise TypeError(
            f"{type(estimator).__name__} with kernel={kernel!r} has no coefficients of features: "
            "its boundary is linear in the kernel's space, not in the features; fit it with "
            "kernel='linear'"
            if kernel is not None
            else f"{type(estimator).__name__} has no coefficients: it was fitted without refit=True"
        )
    return model


def _deviations(model: Estimator, X: Features, sample_weight: ArrayLike | None) -> Array:
    sample_weight = by_sample("sample_weight", sample_weight, X)
    X = validated_features(model, X)
    weights = validated_weights(sample_weight, X)
    weights = np.ones(X.shape[0]) if weights is None else weights
    return moments(as_design(X), weights / weights.sum(), constant=0.0)[1]


class _Declared:
    """A property that an attribute of the instance takes the place of, such as a parameter."""

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self.value = value
        self.__doc__ = value.__doc__

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else self.value(instance)


class SelectsFeatures(TransformerMixin):
    """Adds `get_support`, `transform` and `get_feature_names_out` to a sparse classifier.

    They are of the features with a coefficient that is not zero, of any class. scikit-learn's
    `SelectorMixin` is not used: its module loads all linear models and matplotlib.
    """

    @_Declared
    def penalty(self: Any) -> str:
        """'l1' where the penalty makes coefficients exactly zero, else 'l2'.

        `sklearn.feature_selection.SelectFromModel` keeps coefficients from 1e-5 on of models that
        say 'l1', and of others those above the mean.
        """
        return "l1" if self.norm_share > 0 else "l2"

    def get_support(self, indices: bool = False) -> Values:
        """Which features have a coefficient that is not zero.

        Returns
        -------
        (n_features,) bool, or with ``indices`` their numbers
        """
        mask: NDArray[np.bool_] = np.any(linear_model_of(self).coef_ != 0, axis=0)
        return np.flatnonzero(mask) if indices else mask

    def transform(self, X: Values) -> Any:
        """The features with a coefficient that is not zero, of data in memory.

        Parameters
        ----------
        X : (n_samples, n_features)

        Returns
        -------
        (n_samples, n_used)
            An array or a matrix; a data frame where `set_output` asks for one.

        Warns
        -----
        UserWarning
            When the model uses no feature.
        """
        used = self.get_support(indices=True)
        X = in_memory(X)
        if is_beyond_memory(X):
            raise ValueError(
                "transform takes data in memory; get_support(indices=True) are the columns to read"
            )
        X = validate_data(self, X, dtype=None, accept_sparse=("csr", "csc"), reset=False)
        if not used.size:
            warnings.warn(
                f"No features were selected: {type(self).__name__} uses none of {X.shape[1]}; "
                "choose a weaker penalty",
                UserWarning,
                stacklevel=users_level(),
            )
        return X[:, used]

    def get_feature_names_out(self, input_features: object = None) -> Values:
        """The names of the features with a coefficient that is not zero.

        Parameters
        ----------
        input_features : (n_features,), optional
            Names, which must be those of the fit if that had any; by default those, or x0, x1, ...
        """
        used = self.get_support(indices=True)
        return np.asarray(_check_feature_names_in(self, input_features)[used])
