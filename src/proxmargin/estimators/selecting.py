"""Sparse classifiers as selectors of the features that they use, in scikit-learn's protocol."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, validate_data

from proxmargin.designs.blocks.device import in_memory
from proxmargin.estimators.coefficients import linear_model_of
from proxmargin.estimators.frames import users_level
from proxmargin.inputs.beyond_memory import is_beyond_memory

__all__ = ["SelectsFeatures"]


class _Declared:
    """A property that an attribute of the instance takes the place of, such as a parameter."""

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self.value = value
        self.__doc__ = value.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else self.value(instance)


class SelectsFeatures(TransformerMixin):  # type: ignore[misc]
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

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Which features have a coefficient that is not zero.

        Returns
        -------
        (n_features,) bool, or with ``indices`` their numbers
        """
        mask: NDArray[np.bool_] = np.any(linear_model_of(self).coef_ != 0, axis=0)
        return np.flatnonzero(mask) if indices else mask

    def transform(self, X: Any) -> Any:
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

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features with a coefficient that is not zero.

        Parameters
        ----------
        input_features : (n_features,), optional
            Names, which must be those of the fit if that had any; by default those, or x0, x1, ...
        """
        used = self.get_support(indices=True)
        return np.asarray(_check_feature_names_in(self, input_features)[used])
