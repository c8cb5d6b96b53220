"""Records of estimators that hold others, and of scikit-learn's plain transformers.

Each is taken apart into parameters, what it has learned, and the estimators within. It is put
together by its constructor and, of scikit-learn's, a fit to one row made of what it has learned:
private attributes are those of the installed version. Then it is tried on that row.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from proxmargin.data.inputs.preprocessing import Preprocessed
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models.archive import CODEC, complete_settings
from proxmargin.files.models.fitted import demand, from_plain, is_array, to_members
from proxmargin.files.tables.matrices import NUMBERS
from proxmargin.models.fitting.registry import CROSS_VALIDATED
from proxmargin.runtime.brief import brief
from proxmargin.runtime.types import Estimator, Record, Values

if TYPE_CHECKING:
    from proxmargin.models.classifiers.ddag import DDAGClassifier
    from proxmargin.models.selection.calibration import CalibratedMargin
    from proxmargin.models.selection.stability.selector import StabilitySelection

Within: TypeAlias = list[tuple[str, Any]]
"""Estimators within another one, each after what messages call it."""

NAMES = "feature_names_in_"


class Parts(NamedTuple):
    """What an estimator is put together of."""

    kind: type[Any]
    settings: Record
    learned: Record
    within: list[Any]


@dataclass(frozen=True)
class EstimatorRecord:
    """How estimators of one class are stored: all parameters but ``left_out``."""

    home: str
    apart: Callable[[Any], tuple[Record, Within]]  # what it has learned, and estimators within
    together: Callable[[Parts], Any]
    left_out: tuple[str, ...] = ()

    def settings(self, estimator: Estimator) -> Record:
        """The parameters that are not left at their defaults: a splitter becomes the number of its
        folds, and a search that pairs of classes have made the classifier that it chose."""
        defaults = inspect.signature(type(estimator)).parameters
        every = estimator.get_params(deep=False)
        given = {name: value for name, value in every.items() if name not in self.left_out}
        if not isinstance(given.get("cv"), int | None):
            given["cv"] = len(estimator.estimators_)
        if type(given.get("estimator")).__name__ in CROSS_VALIDATED:
            given["estimator"] = clone(estimator.estimators_[0].best_estimator_)
        return {
            name: value
            for name, value in given.items()
            if not is_same(value, defaults[name].default)
            if name != "random_state" or isinstance(value, int | None)
        }


def is_same(value: object, other: object) -> bool:
    """Whether a parameter is its default: of the same type, and equal or both NaN."""
    same = type(value) is type(other)
    return same and bool(value == other or (value != value and other != other))


def class_of(name: str) -> type:
    return getattr(import_module(RECORDS[name].home), name)


def name_of(estimator: Estimator) -> str | None:
    """The name of the record of an estimator; None for one that has none."""
    kind = type(estimator)
    name = "Pipeline" if kind is Preprocessed else kind.__name__
    is_known = name in RECORDS and (kind is Preprocessed or class_of(name) is kind)
    return name if is_known else None


def parts_of(estimator: Estimator) -> tuple[Record, dict[str, bytes], Within]:
    """The entries of a record, the arrays among them as members, and the estimators within."""
    name = type(estimator).__name__
    record = RECORDS[name_of(estimator) or name]
    try:
        learned, within = record.apart(estimator)
    except AttributeError as error:
        raise ModelFileError(f"this {name} is not fitted: call fit before saving it") from error
    names = getattr(estimator, NAMES, None)
    if names is not None and name not in OF_PARTS:
        learned[NAMES] = tuple(map(str, names))
    layout = getattr(estimator, "_sklearn_output_config", None)
    if layout:
        learned["output"] = layout["transform"]
    arrays = {
        key: each
        for key, each in learned.items()
        if isinstance(each, np.ndarray) and each.dtype.kind in NUMBERS
    }
    plain, members = to_members(arrays)
    plain |= {
        key: {"value": CODEC.encode(each, key)}
        for key, each in learned.items()
        if key not in arrays and each is not None
    }
    settings = {key: CODEC.encode(each, key) for key, each in record.settings(estimator).items()}
    return {"settings": settings, "fitted": plain}, members, within


def put_together(
    name: str, content: Record, read: Callable[[str], bytes], within: list[Estimator]
) -> Estimator:
    """The estimator of a record, tried on a row."""
    record, kind = RECORDS[name], class_of(name)
    allowed = {*inspect.signature(kind).parameters} - {*record.left_out}
    settings = _some_of(content["settings"], allowed, name)
    plain = CODEC.expect(content["fitted"], dict, "fitted")
    values = {k: v["value"] for k, v in plain.items() if isinstance(v, dict) and {*v} == {"value"}}
    learned = complete_settings(values, values, name)
    learned |= {k: from_plain(k, v, read) for k, v in plain.items() if k not in values}
    names, layout = learned.pop(NAMES, None), learned.pop("output", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a row without names, and of missing entries
            found = record.together(Parts(kind, settings, learned, within))
            if hasattr(found, "steps") or hasattr(found, "transform"):
                _try(found)
            if names is not None:
                whole = are_words(names) and len({*names}) == len(names) == found.n_features_in_
                demand(whole, "it lacks names of features")
                found.feature_names_in_ = np.array(names, dtype=object)
            if layout is not None:
                found.set_output(transform=layout)
            for given, taken in _meeting(found):
                same = given is None or taken is None or [*given] == [*taken]
                demand(same, "its names of features contradict each other")
    except ModelFileError:
        raise
    except Exception as error:  # forged values meet code that is not made for them
        raise ModelFileError(f"its {name} is not valid ({brief(error, 300)})") from error
    return found


def _meeting(found: object) -> Iterator[tuple[Any, Any]]:
    """Names of the features that each estimator within gets, and those that it was fitted to."""
    names = getattr(found, NAMES, None)
    if hasattr(found, "steps"):
        for before, after in pairwise(each for _, each in found.steps if each != "passthrough"):
            layout = getattr(before, "_sklearn_output_config", {}).get("transform", "default")
            named = layout != "default" and hasattr(after, NAMES)
            yield before.get_feature_names_out() if named else None, getattr(after, NAMES, None)
    elif hasattr(found, "transformers_"):
        for _, each, at in found.transformers_:
            yield None if names is None else names[at], getattr(each, NAMES, None)
    else:
        for each in getattr(found, "estimators_", ()):
            yield names, getattr(each, NAMES, None)


def are_words(names: Any) -> bool:
    whole = isinstance(names, list | tuple)
    return whole and all(isinstance(each, str) for each in names)


def _some_of(plain: object, allowed: set[str], what: str) -> Record:
    given = allowed.intersection(plain) if isinstance(plain, dict) else allowed
    return complete_settings(plain, given, what)


def _try(found: Any) -> None:
    """Transform one row, and see that the model after it takes the result."""
    row: Any = _row(found)
    for step in [each for _, each in found.steps] if hasattr(found, "steps") else [found]:
        if hasattr(step, "predict"):
            demand(row.shape[1] == step.n_features_in_, "its steps do not belong together")
        elif step != "passthrough":
            row = step.transform(row)
    numbers = np.asarray(row.toarray() if hasattr(row, "toarray") else row)
    demand(numbers.shape[0] == 1, "its steps do not return a row for a row")
    if numbers.dtype.kind == "f":
        demand(bool(np.isfinite(numbers).all()), "its steps return numbers that are not finite")


def _row(fitted: Estimator) -> Values:
    """A row that a transformer takes: categories that it knows, and zeros."""
    values = _example(fitted)
    plain = any(isinstance(each, str | int) for each in values)  # of arrays of objects
    return np.array([values], object if plain else float)


def _example(fitted: Estimator) -> list[object]:
    kind = type(fitted).__name__
    if hasattr(fitted, "steps"):
        return _example(next(step for _, step in fitted.steps if step != "passthrough"))
    if kind == "OneHotEncoder":
        return [categories[0] for categories in fitted.categories_]
    if kind == "SimpleImputer":
        return [0.0 if each != each else each for each in fitted.statistics_]
    if kind == "ColumnTransformer":
        parts = [(each, at) for _, each, at in fitted.transformers_]
        return _placed(parts, fitted.n_features_in_)
    return [0.0] * fitted.n_features_in_


def _placed(parts: list[tuple[object, list[int]]], width: int) -> list[Any]:
    row: list[Any] = [0.0] * width
    for each, at in parts:
        known = [0.0] * len(at) if isinstance(each, str) else _example(each)
        for j, value in zip(at, known, strict=True):
            row[j] = row[j] or value  # a category, where a column goes to two transformers
    return row


# scikit-learn's transformers of columns


def _scaler(home: str, *names: str) -> EstimatorRecord:
    """Of a scaler, whose first attribute has one number a feature."""

    def apart(scaler: Estimator) -> tuple[Record, Within]:
        learned = {name: getattr(scaler, name) for name in names}
        if learned[names[0]] is None:
            kind = type(scaler).__name__
            raise ModelFileError(f"this {kind} changes nothing: leave it out of the pipeline")
        return learned, []

    def together(it: Parts) -> Estimator:
        demand({names[0]} <= {*it.learned} <= {*names}, "its scaler has other attributes")
        width = it.learned[names[0]].size
        for value in it.learned.values():
            numbers = isinstance(value, int | float) or (
                is_array(value, "fiu", 1) and value.size == width
            )
            demand(numbers, "its scaler must have one number a feature")
        found = it.kind(**it.settings).fit(np.zeros((1, width)))
        vars(found).update(it.learned)
        return found

    return EstimatorRecord(home, apart, together)


def _imputer_apart(imputer: Estimator) -> tuple[Record, Within]:
    values, indicator = imputer.statistics_, imputer.indicator_
    told = None if indicator is None else indicator.features_
    text = any(isinstance(each, str) for each in values.tolist())
    plain = tuple(values.tolist()) if text else values.astype(float)
    return {"statistics_": plain, "indicated": told}, []


def _imputer_together(it: Parts) -> Estimator:
    """Fitted to the values that it fills in, and to a row that lacks those that it indicates."""
    plain = it.learned["statistics_"]
    values = np.array(plain, dtype=object if isinstance(plain, tuple) else float)
    demand(values.ndim == 1, "its imputer must have one value a feature")
    found = it.kind(**it.settings)
    filled = np.where(values != values, found.missing_values, values).astype(values.dtype)
    lacking = filled.copy()
    if "indicated" in it.learned:
        lacking[it.learned["indicated"]] = found.missing_values
    found.fit(np.array([filled, lacking]))
    found.statistics_ = values
    return found


def _encoder_apart(encoder: Estimator) -> tuple[Record, Within]:
    if encoder.min_frequency is not None or encoder.max_categories is not None:
        raise ModelFileError(
            "this OneHotEncoder joins rare categories (min_frequency=, max_categories=): fit it "
            'without them, handle_unknown="ignore" takes unseen ones'
        )
    each = encoder.categories_
    return {"categories_": [tuple(c.tolist()) if c.dtype.kind in "OU" else c for c in each]}, []


def _encoder_together(it: Parts) -> Estimator:
    each = [
        np.array(c, dtype=object) if isinstance(c, tuple) else c for c in it.learned["categories_"]
    ]
    found = it.kind(**it.settings)
    given = found.categories
    found.categories = each
    found.fit(np.array([[c[0] for c in each]], dtype=object))
    found.categories, found.categories_ = given, each
    return found


# estimators that hold others


def _selector_apart(selector: Estimator) -> tuple[Record, Within]:
    fitted = getattr(selector, "estimator_", None) or selector.estimator
    return {}, [("the estimator", fitted)]


def _selector_together(it: Parts) -> Estimator:
    (model,) = it.within
    found = it.kind(model if it.settings.get("prefit") else clone(model), **it.settings)
    found.estimator_ = model
    if found.max_features is not None:
        found.max_features_ = found.max_features
    return found


def _pipeline_apart(pipeline: Estimator) -> tuple[Record, Within]:
    names = [name for name, _ in pipeline.steps]
    return {"names": names}, [(f"step {name!r}", step) for name, step in pipeline.steps]


def _pipeline_together(it: Parts) -> Estimator:
    """With the coefficients and the certificate of its model, if it has one."""
    first, last = it.within[0], it.within[-1]
    kind = Preprocessed if hasattr(last, "predict") else it.kind
    if hasattr(last, NAMES) and not hasattr(first, NAMES) and hasattr(first, "statistics_"):
        first.feature_names_in_ = last.__dict__.pop(NAMES)  # of a model that was fitted by itself
    found = kind([*zip(it.learned["names"], it.within, strict=True)], **it.settings)
    found._validate_steps()
    return found


def _columns_apart(whole: Estimator) -> tuple[Record, Within]:
    """Columns by their numbers, those of the rest last, and as they were given if by names."""
    fitted = {name: each for name, each, _ in whole.transformers_}
    places = whole._transformer_to_input_indices
    every = [*whole.transformers, ("remainder", whole.remainder, None)]
    within = [
        (
            f"transformer {name!r}",
            each if isinstance(each, str) else fitted[name] if len(places[name]) else "drop",
        )
        for name, each, _ in every
    ]
    names = [name for name, _, _ in whole.transformers]
    columns = [[int(j) for j in places[name]] for name in (*names, "remainder")]
    learned = {"names": names, "columns": columns, "sparse_output_": whole.sparse_output_}
    named = [_are_names(given) for given in map(_given, whole.transformers, whole._columns)]
    if any(named):
        words = [[str(whole.feature_names_in_[j]) for j in at] for at in columns[:-1]]
        learned["by_name"] = [
            each if is_named else None for each, is_named in zip(words, named, strict=True)
        ]
    return learned, within


def _given(transformer: tuple[str, object, object], selected: object) -> object:
    """The columns of a transformer as they were given, or as a function selected them."""
    return selected if callable(transformer[2]) else transformer[2]


def _are_names(columns: Any) -> bool:
    """Whether columns are given by names, which stay with a table in another order."""
    if isinstance(columns, slice):
        columns = [columns.start, columns.stop]
    words = [columns] if isinstance(columns, str) else columns
    return any(isinstance(each, str) for each in words) if np.ndim(words) == 1 else False


def _columns_together(it: Parts) -> Estimator:
    from sklearn.frozen import FrozenEstimator

    names, columns = it.learned["names"], it.learned["columns"]
    used = {*chain.from_iterable(columns)}
    width = len(used)
    demand(used == {*range(width)}, "its columns are not those of a table")
    *frozen, rest = (each if isinstance(each, str) else FrozenEstimator(each) for each in it.within)
    found = it.kind([*zip(names, frozen, columns[:-1], strict=True)], remainder=rest, **it.settings)
    row = _placed([*zip(it.within, columns, strict=True)], width)
    found.fit(np.array([row], dtype=object))

    def thawed(entries: Any, made: Callable[[Any], Any]) -> list[tuple[str, Any, Any]]:
        return [(n, made(getattr(each, "estimator", each)), at) for n, each, at in entries]

    unfitted = thawed(found.transformers, lambda each: clone(each, safe=False))
    by_name = it.learned.get("by_name", [None] * len(unfitted))
    for words, at in zip(by_name, columns[:-1], strict=True):
        fits = words is None or (are_words(words) and len(words) == len(at))
        demand(fits, "its columns by name are not those by number")
    unfitted = [
        (n, each, at if words is None else words)
        for (n, each, at), words in zip(unfitted, by_name, strict=True)
    ]
    found.transformers, found.transformers_ = unfitted, thawed(found.transformers_, lambda e: e)
    found.remainder = clone(getattr(rest, "estimator", rest), safe=False)
    found.sparse_output_ = bool(it.learned["sparse_output_"])
    return found


OF_SELECTION = (
    *("frequencies_", "max_frequencies_", "stable_", "alphas_", "threshold_", "pfer_"),
    *("q_", "fdr_", "cluster_", "_support"),
)


def _stability_apart(selection: StabilitySelection) -> tuple[Record, Within]:
    classes = tuple(selection.classes_.tolist())
    return {**{n: getattr(selection, n) for n in OF_SELECTION}, "classes_": classes}, []


def _stability_together(it: Parts) -> Estimator:
    demand({*it.learned} == {*OF_SELECTION, "classes_"}, "its selection lacks attributes")
    found = it.kind(**it.settings)
    found._checked_terms(), found._template()
    width = it.learned["stable_"].size
    for name in ("max_frequencies_", "stable_", "cluster_", "_support"):
        value = it.learned[name]
        demand(is_array(value, "fiub", 1) and value.size == width, f"{name!r}")
    vars(found).update(it.learned, classes_=np.array(it.learned["classes_"]), n_features_in_=width)
    return found


def _graph_apart(graph: DDAGClassifier) -> tuple[Record, Within]:
    if any(hasattr(model, "training_rows_") for model in graph.estimators_):
        raise ModelFileError(
            "a DDAGClassifier of a kernel matrix needs its rows: fit it with the kernel's name"
        )
    pairs = [f"the classifier of pair {pair}" for pair in graph.pairs_]
    return {"classes_": tuple(graph.classes_.tolist())}, [
        *zip(pairs, graph.estimators_, strict=True)
    ]


def _graph_together(it: Parts) -> Estimator:
    found = it.kind(**it.settings)
    found._checked_estimator()
    classes = it.learned["classes_"]
    found.classes_, found.estimators_ = np.array(classes), it.within
    found.pairs_ = [*combinations(range(len(classes)), 2)]
    found.n_features_in_ = it.within[0].n_features_in_
    for (i, j), model in zip(found.pairs_, it.within, strict=True):
        own = (model.classes_.tolist(), model.n_features_in_)
        demand(own == ([classes[i], classes[j]], found.n_features_in_), "its pairs are others")
    found._note_certificates()
    return found


def _calibrated_apart(calibrated: CalibratedMargin) -> tuple[Record, Within]:
    _ = calibrated.calibrator_  # without which it is not fitted
    models = calibrated._predicting
    return {}, [(f"model {k}", model) for k, model in enumerate(models)]


def _calibrated_together(it: Parts) -> Estimator:
    found = it.kind(clone(it.within[0]), **it.settings)
    found._check_parameters()
    first, *others = [(each.classes_.tolist(), each.n_features_in_) for each in it.within]
    if any(each != first for each in others) or (len(it.within) > 1) > found._is_ensemble:
        raise ModelFileError("its models do not belong together")
    found.classes_, found.n_features_in_ = it.within[0].classes_, it.within[0].n_features_in_
    if hasattr(it.within[0], NAMES):
        found.feature_names_in_ = it.within[0].feature_names_in_
    if found._is_ensemble:
        found.estimators_ = it.within
    else:
        found.estimator_ = it.within[0]
    return found


RECORDS: Mapping[str, EstimatorRecord] = {
    "StandardScaler": _scaler(
        "sklearn.preprocessing", "mean_", "var_", "scale_", "n_samples_seen_"
    ),
    "MinMaxScaler": _scaler(
        *("sklearn.preprocessing", "min_", "scale_", "data_min_", "data_max_", "data_range_"),
        "n_samples_seen_",
    ),
    "SimpleImputer": EstimatorRecord("sklearn.impute", _imputer_apart, _imputer_together),
    "OneHotEncoder": EstimatorRecord("sklearn.preprocessing", _encoder_apart, _encoder_together),
    "SelectFromModel": EstimatorRecord(
        "sklearn.feature_selection", _selector_apart, _selector_together, ("estimator",)
    ),
    "ColumnTransformer": EstimatorRecord(
        *("sklearn.compose", _columns_apart, _columns_together),
        ("transformers", "remainder", "n_jobs", "force_int_remainder_cols"),
    ),
    "Pipeline": EstimatorRecord(
        "sklearn.pipeline", _pipeline_apart, _pipeline_together, ("steps", "memory")
    ),
    "StabilitySelection": EstimatorRecord(
        "proxmargin", _stability_apart, _stability_together, ("checkpoint",)
    ),
    "DDAGClassifier": EstimatorRecord("proxmargin", _graph_apart, _graph_together),
    "CalibratedMargin": EstimatorRecord(
        "proxmargin", _calibrated_apart, _calibrated_together, ("estimator",)
    ),
}
# whose names of features are those of what they hold
OF_PARTS = frozenset({"Pipeline", "Preprocessed", "CalibratedMargin"})
