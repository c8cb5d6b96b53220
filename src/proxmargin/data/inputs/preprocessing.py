"""Transformers before a model: fitted to training rows, and kept with the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.runtime.forwarding import forwarded
from proxmargin.runtime.types import Estimator, Values

if TYPE_CHECKING:
    import pandas as pd

STRATEGIES = ("median", "mean", "constant")
"""What a missing entry becomes: the median or the mean of its column, or zero."""

TEXT_LENGTH = 100_000  # of the text that tells a transformer; scikit-learn cuts it at 700


class Preprocessed(Pipeline):  # type: ignore[misc]
    """Fitted transformers and the model that was fitted to what they return. A pipeline of
    scikit-learn, which also has the certificate and the coefficients of its model: those of the
    transformed features."""

    fills_blanks = True
    """Files are read with their missing cells for it."""

    @classmethod
    def of(cls, transformer: Estimator, model: Estimator) -> Preprocessed:
        """Of a transformer and a model that are fitted."""
        return cls([("preprocess", transformer), ("model", model)])

    @available_if(lambda self: hasattr(self.model, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Features, **params: object) -> Values:
        """Scores by the model of the transformed samples; ``params`` are routed to the steps."""
        if params:
            return super().decision_function(X, **params)
        for _, step in self.steps[:-1]:  # a row takes a pipeline longer than its steps
            X = X if step in (None, "passthrough") else step.transform(X)
        return self.model.decision_function(X)

    @property
    def transformer(self) -> Any:
        return self.steps[0][1] if len(self.steps) == 2 else self[:-1]

    @property
    def model(self) -> Any:
        return self.steps[-1][1]

    certificate_, coef_, intercept_ = forwarded("model", "certificate_", "coef_", "intercept_")

    def coefficients(
        self,
        X: Features | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        zeros: bool = False,
    ) -> pd.DataFrame:
        """The coefficients of the transformed features; as those of the model otherwise."""
        values = None if X is None else self.transformer.transform(X)
        found = self.model.coefficients(values, sample_weight=sample_weight, zeros=zeros)
        before, named = self.transformer, hasattr(self.model, "feature_names_in_")
        known = hasattr(before, "feature_names_in_") or not hasattr(before, "n_features_in_")
        if not named and known and hasattr(before, "get_feature_names_out"):
            found["feature"] = before.get_feature_names_out()[found["feature"].to_numpy(np.intp)]
        return found


class SeenLevels(NamedTuple):
    """What fitted transformers know of a column that they take by its levels."""

    known: Sequence[Any]  # none where no encoder tells
    is_text: bool
    ignored: bool = False  # whether others become zeros
    has_missing: bool = False  # whether cells may be missing
    as_objects: bool = False  # whether the model compares them as Python objects, also numbers


def levels_of(fitted: Estimator) -> dict[int, SeenLevels]:
    """The columns that fitted transformers, or what begins with them, take by their levels."""
    if isinstance(fitted, Pipeline):
        first, *rest = [step for _, step in fitted.steps if step not in (None, "passthrough")]
        found = levels_of(first)
        if not hasattr(first, "statistics_") or not rest:
            return found
        values = enumerate(first.statistics_)
        kept = [j for j, each in values if each == each or first.keep_empty_features]
        after = {k: each for k, each in levels_of(rest[0]).items() if k < len(kept)}
        return found | {kept[k]: each._replace(has_missing=True) for k, each in after.items()}
    if hasattr(fitted, "transformers_"):
        places = fitted._transformer_to_input_indices
        parts = [(levels_of(each), places[name]) for name, each, _ in fitted.transformers_]
        return {at[j]: each for own, at in parts for j, each in own.items()}
    if hasattr(fitted, "statistics_"):
        values = enumerate(fitted.statistics_)
        return {j: SeenLevels([], True, True, True) for j, each in values if isinstance(each, str)}
    found = {}
    for j, every in enumerate(getattr(fitted, "categories_", [])):
        known = [each for each in every.tolist() if each is not None and each == each]
        ignored = fitted.handle_unknown != "error"
        is_text = any(isinstance(each, str) for each in known)
        missing = ignored or len(known) < len(every)
        found[j] = SeenLevels(known, is_text, ignored, missing, every.dtype == object)
    return found


def imputer(strategy: str) -> SimpleImputer:
    """What fills in missing entries; a column without any other entry becomes zero."""
    return SimpleImputer(strategy=strategy, fill_value=0.0, keep_empty_features=True)


def refilled(strategy: str, values: NDArray[np.float64], names: object = None) -> SimpleImputer:
    """A fitted imputer with these values, one a feature."""
    found = imputer(strategy).fit(values[None, :])
    found.statistics_ = values  # those of a constant are zero
    if names is not None:
        found.feature_names_in_ = names
    return found


def fitted_transformer(transformer: Estimator, X: Features, y: Labels) -> Estimator:
    """A copy of the transformer that is fitted to these rows alone; TypeError if it is none."""
    if not (hasattr(transformer, "fit") and hasattr(transformer, "transform")):
        raise TypeError(
            "preprocess must be a transformer of scikit-learn with fit and transform, such as "
            f"SimpleImputer() or a pipeline of such, got {transformer!r:.80}"
        )
    return clone(transformer).fit(X, y)


def expression(estimator: Estimator) -> str:
    """The Python expression that makes an estimator again, unfitted, with the parameters that are
    no defaults; callbacks, which show progress, are none of them."""
    if isinstance(estimator, Preprocessed):
        return f"make_pipeline({described(estimator.transformer)}, {expression(estimator.model)})"
    settings = estimator.get_params(deep=False)
    if "callbacks" in settings:  # of this package
        plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in settings.items()}
        estimator = type(estimator)(**{**plain, "callbacks": ()})
    made = described(estimator)
    return re.sub(r"(?<=[\[( -])inf(?=[\],)])", "float('inf')", made)


def described(transformer: Estimator) -> str:
    """The transformer with its parameters, as text."""
    if hasattr(transformer, "__sklearn_tags__"):
        text: str = transformer.__repr__(N_CHAR_MAX=TEXT_LENGTH)
        return " ".join(text.split())
    return repr(transformer)
