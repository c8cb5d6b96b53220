"""Model files: a fitted estimator in a zip archive of one JSON document and plain arrays.

``model.json`` holds the format's version, the estimator's name and parameters, small attributes,
the certificate and the SHA-256 of every other member; ``coef_.npy``, ``support_vectors_.data.npy``
and their like hold numbers. Reading a file looks up names in a fixed list of classes and calls
nothing but their constructors and checks: there is no pickle in it.

A file from a stranger executes nothing. Parameters, shapes and numbers are checked as those of a
fit, and reading takes memory in proportion to the file. It can still hold a model that is wrong on
purpose, with a certificate that is made up: only a signature tells whose model it is.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

import proxmargin
from proxmargin.data.inputs.parameters import check_number
from proxmargin.data.inputs.preprocessing import STRATEGIES, Preprocessed, refilled
from proxmargin.data.kernels import Kernel, named_kernel
from proxmargin.files.errors import ModelFileError, listed
from proxmargin.files.models import fitted
from proxmargin.files.models.archive import (
    CODEC,
    CONTENT,
    ESTIMATORS,
    MANIFEST,
    OPTIONAL,
    SIGNATURE,
    Sign,
    Verify,
    certificate_from_plain,
    certificate_to_plain,
    complete_settings,
    document_of,
    forgotten,
    opened_archive,
    read_manifest,
    read_member,
    write_archive,
)
from proxmargin.files.models.composed import RECORDS, are_words, name_of, parts_of, put_together
from proxmargin.files.models.fitted import form_of
from proxmargin.files.tables.cells import SIGNS
from proxmargin.files.tables.contents import DUPLICATES, Dialect
from proxmargin.models.fitting.coefficients import Ranked
from proxmargin.models.fitting.registry import CROSS_VALIDATED
from proxmargin.models.selection.calibrators import Calibrator
from proxmargin.optimality.certificates.certificate import CertificateList
from proxmargin.runtime.brief import brief
from proxmargin.runtime.types import Estimator, Record


def _refilled(model: Estimator, imputed: Estimator) -> Estimator:
    """The pipeline of an imputer and a model, as version 0.1 wrote it."""
    whole = isinstance(imputed, dict) and set(imputed) == {"strategy", "values"}
    if not whole or imputed["strategy"] not in STRATEGIES:
        raise ModelFileError("it describes an imputer that there is not")
    values = imputed["values"]
    numbers = isinstance(values, list) and all(type(each) in (int, float) for each in values)
    if not numbers or len(values) != model.n_features_in_:
        raise ModelFileError("its imputer does not have one number for each feature")
    names = model.__dict__.pop("feature_names_in_", None)
    filled = refilled(imputed["strategy"], np.array(values, np.float64), names)
    return Preprocessed.of(filled, model)


def refuse_invalid(estimator: Estimator) -> None:
    """Refuse an estimator whose parameters do not pass the checks of its `fit`."""
    try:
        estimator._check_parameters()
        estimator._check_model()
        weights = estimator.class_weight
        if isinstance(weights, Mapping):
            for label, weight in weights.items():
                check_number(f"class_weight[{label!r}]", weight, low=0.0)
        elif not (weights is None or (isinstance(weights, str) and weights == "balanced")):
            raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {weights!r}")
        if hasattr(estimator, "kernel"):
            _check_kernel(estimator)
    except Exception as error:  # values of any type meet comparisons not made for them
        name = type(estimator).__name__
        raise ModelFileError(f"its settings are none of a {name}: {brief(error, 400)}") from error


def _check_kernel(estimator: Estimator) -> None:
    kernel, gamma = estimator.kernel, estimator.gamma
    if not isinstance(kernel, str | Kernel):
        raise ValueError(f"kernel must be a name or a kernel of this library, got {kernel!r}")
    by_data = isinstance(gamma, str) and gamma in ("scale", "auto")
    options = {"degree": estimator.degree, "coef0": estimator.coef0}
    named_kernel(kernel, gamma=1.0 if by_data else gamma, X=None, **options)


# the facts about a certificate
CERTIFIED = (
    *("primal", "dual", "gap", "relative_gap", "kkt_residual", "converged", "stop_reason"),
    *("n_iter", "n_passes", "seconds", "solver", "because"),
)
# what is known of the training table, by attribute: the entry of the document, and what it must be
OPTIONS_OF_TABLES: Mapping[str, Callable[[Any], object]] = {
    "missing": lambda words: Dialect(missing=words).missing == words,
    "signs": lambda words: all(word.rpartition("=")[2] in {*SIGNS} for word in words),
    "normalize_levels": lambda value: value is True,
    "duplicates": DUPLICATES.__contains__,
}
OF_TABLES: Mapping[str, tuple[str, Callable[[Any, int], object]]] = {
    # what cells stand for, in others, too
    "table_options_": (
        "table",
        lambda found, width: all(OPTIONS_OF_TABLES[name](each) for name, each in found.items()),
    ),
    # columns that are no features
    "table_roles_": (
        "roles",
        lambda found, width: (
            are_words([*found.values()]) and {*found} <= {"target", "ids", "groups"}
        ),
    ),
    # the extremes of its numbers: shape (2, n_features)
    "table_ranges_": (
        "ranges",
        lambda found, width: found.shape == (2, width) and not (found[0] > found[1]).any(),
    ),
    # digests of the names of its samples
    "table_ids_": ("ids", lambda found, width: fitted.is_array(found, "u", 1)),
}
TOP_FEATURES = 10  # that the facts about a model name

OF_SEVERAL = {"CalibratedMargin": "calibrates", "DDAGClassifier": "pairs_of"}
# facts about the features of a model within another one
OF_FEATURES = ("features", "feature_names", "columns", "imputed", "steps")
PROBES = np.array([-1e3, -1.0, 0.0, 1.0, 1e3])  # scores


def save_model(
    estimator: Estimator, path: str | os.PathLike[str], *, sign: Sign | None = None
) -> None:
    """Write a fitted estimator to a file that executes nothing when it is read.

    The file replaces an existing one in a single step: a process that dies while writing leaves
    the old file whole. Callbacks are not stored.

    Parameters
    ----------
    estimator : a fitted estimator of this library, or a pipeline that ends with one
        Of a search the chosen model, ``best_estimator_``. Before a model scikit-learn's
        StandardScaler, MinMaxScaler, SimpleImputer, OneHotEncoder, ColumnTransformer and
        SelectFromModel, and `StabilitySelection`. Of a `CalibratedMargin` the map and the models by
        which it predicts; a ``cv`` that is no number becomes the number of its folds.
    path : str or path
        Any name; ``.pmz`` is customary.
    sign : callable (bytes) -> bytes, optional
        Makes the signature that is stored with the model, for `load_model` to verify: of the JSON
        document, which holds the SHA-256 of everything else.

    Raises
    ------
    ModelFileError
        The estimator, or one within it that the message names, is not fitted, is of another class,
        has a parameter that cannot be stored (such as a random generator) or fitted, or numbers
        that are not finite, or the file cannot be written.

    See Also
    --------
    load_model : Reads the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SVC, load_model, save_model
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> file = Path(tempfile.mkdtemp(), "model.pmz")
    >>> save_model(SVC(C=0.1, standardize=True).fit(X, y), file)
    >>> load_model(file).C
    0.1
    """
    content, arrays = _content(estimator)
    for name, (entry, _) in OF_TABLES.items():
        value = getattr(estimator, name, None)
        if fitted.is_array(value, "u", 1):
            plain, members = fitted.to_members({name: value})
            content[entry], arrays = plain[name], arrays | members
        elif value is not None:
            plain = value.tolist() if isinstance(value, np.ndarray) else value
            content[entry] = CODEC.encode(plain, name)
    document = document_of(content, arrays)
    signature = None if sign is None else sign(document)
    if not isinstance(signature, bytes | None):
        raise ModelFileError(f"sign must return bytes, got {type(signature).__name__}.")
    signed = {} if signature is None else {SIGNATURE: signature}
    write_archive(Path(path), {MANIFEST: document, **signed, **arrays})


def _content(estimator: Estimator, where: str = "") -> tuple[Record, dict[str, bytes]]:
    """What the document says of an estimator, and its arrays; ``where`` it is within another."""
    estimator = _chosen(estimator)
    with _explained(where or "This model cannot be stored", always=bool(where)):
        if name_of(estimator) is None:
            return _of_model(estimator)
        own, arrays, within = parts_of(estimator)
    each: list[Any] = []
    for k, (called, part) in enumerate(within):
        if isinstance(part, str | None):
            each.append(part or "passthrough")
            continue
        plain, members = _content(part, f"{where or type(estimator).__name__}: {called}")
        each.append(plain)
        arrays |= {f"{k}/{name}": data for name, data in members.items()}
    content = {"estimator": name_of(estimator), **own, "certificate": None}
    return {**content, **({"models": each} if within else {}), **_calibration(estimator)}, arrays


def _of_model(estimator: Estimator) -> tuple[Record, dict[str, bytes]]:
    _refuse_unknown(estimator)
    form = form_of(estimator)
    parameters = estimator.get_params(deep=False)
    parameters |= forgotten(parameters)
    settings = {name: CODEC.encode(value, name) for name, value in parameters.items()}
    learned = fitted.collect(estimator, form)
    _unfitted(type(estimator).__name__, settings)
    form.check(learned)
    plain, arrays = fitted.to_members(learned)
    certificate = getattr(estimator, "certificate_", None)
    content = {
        "estimator": type(estimator).__name__,
        "settings": settings,
        "fitted": plain,
        "certificate": None if certificate is None else certificate_to_plain(certificate),
        **_calibration(estimator),
    }
    return content, arrays


def _calibration(estimator: Estimator) -> Record:
    found = getattr(estimator, "calibrator_", None)
    return {} if found is None else {"calibrator": CODEC.encode(found, "calibrator_")}


def load_model(path: str | os.PathLike[str], *, verify: Verify | None = None) -> Estimator:
    """The fitted estimator in a file written by `save_model`.

    Nothing in the file is executed, and its parameters, shapes and numbers are checked as those of
    a fit. Whether the model is a good one, and its certificate true, only its origin tells.

    Parameters
    ----------
    path : str or path
    verify : callable (document: bytes, signature: bytes) -> bool, optional
        Whether the stored signature is one of the document. Where it is given, a file without a
        signature is refused, and so is one for which it returns anything but True or raises.

    Raises
    ------
    ModelFileError
        The file is missing, foreign, damaged (the message names the member), not signed as asked
        for, or of another version of the format.

    See Also
    --------
    save_model : Writes the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import DWD, load_model, save_model
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> file = Path(tempfile.mkdtemp(), "model.pmz")
    >>> model = DWD(standardize=True).fit(X, y)
    >>> save_model(model, file)
    >>> bool((load_model(file).predict(X) == model.predict(X)).all())
    True
    """
    estimator, _ = _loaded(Path(path), verify)
    return estimator


def describe_model(model: Estimator) -> Record:
    """Plain facts about a model, ready to print or to write as JSON.

    Parameters
    ----------
    model : a fitted estimator, or the path of a model file
    """
    if not isinstance(model, str | os.PathLike):
        return _facts(_chosen(model))
    estimator, manifest = _loaded(Path(model))
    return {
        "source": os.fspath(model),
        "format_version": manifest["version"],
        "proxmargin": manifest["proxmargin"],
        **_facts(estimator),
        **({"table_options": estimator.table_options_} if "table" in manifest else {}),
        **({"table_roles": estimator.table_roles_} if "roles" in manifest else {}),
    }


def _chosen(estimator: Estimator) -> Estimator:
    """The model itself, or the one that cross-validation chose."""
    if type(estimator).__name__ not in CROSS_VALIDATED:
        return estimator
    if not hasattr(estimator, "best_estimator_"):
        raise ModelFileError(f"This {type(estimator).__name__} has chosen no model: fit it first.")
    return estimator.best_estimator_


def _refuse_unknown(estimator: Estimator) -> None:
    name = type(estimator).__name__
    if name not in ESTIMATORS or getattr(proxmargin, name) is not type(estimator):
        raise ModelFileError(
            f"A {type(estimator).__qualname__} cannot be stored; models that can: "
            f"{listed(ESTIMATORS, quote=False, at_most=len(ESTIMATORS))}, searches among them, and "
            f"{listed(RECORDS, quote=False, at_most=len(RECORDS))} of these; type "
            "skops.io.dump(model, file) for others."
        )


def _loaded(path: Path, verify: Verify | None = None) -> tuple[Any, Record]:
    with opened_archive(path) as archive, _explained(f"{path}: not a valid model file"):
        manifest = read_manifest(archive, verify)
        digests, used = manifest["members"], set()

        def read(name: str) -> bytes:
            used.add(name)
            return read_member(archive, name, digests)

        estimator = _restored(manifest, read)
        for name, (entry, _) in OF_TABLES.items():
            if entry in manifest:
                found = _of_table(name, manifest[entry], read, estimator.n_features_in_)
                setattr(estimator, name, found)
        if set(digests) != used:
            raise ModelFileError("it holds members that do not belong to a model")
    return estimator, manifest


def _of_table(name: str, plain: Any, read: Callable[[str], bytes], width: int) -> Any:
    """What an entry of the document tells of the training table."""
    try:
        if isinstance(plain, dict) and "array" in plain:
            found = fitted.from_plain(name, plain, read)
        else:
            found = CODEC.decode(plain, name)
            found = np.array(found, np.float64) if name == "table_ranges_" else found
        sound = OF_TABLES[name][1](found, width)
    except Exception as error:  # forged values fail in any way
        raise ModelFileError(f"its {name} are none of a table ({brief(error)})") from error
    if not sound:
        raise ModelFileError(f"its {name} are none of a table")
    return found


def _unfitted(name: object, plain: object) -> Estimator:
    """The estimator with settings that it could have been fitted with."""
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(f"it names {name!r:.60}, which is no estimator of this version")
    kind: Any = getattr(proxmargin, name)
    parameters = list(inspect.signature(kind).parameters)
    settings = complete_settings(plain, parameters, name)
    callbacks = settings.get("callbacks", ())
    if not isinstance(callbacks, tuple) or callbacks:
        raise ModelFileError("its settings hold 'callbacks', which are no part of a model")
    estimator = kind(**settings)
    refuse_invalid(estimator)
    return estimator


def _restored(content: Record, read: Callable[[str], bytes]) -> Estimator:
    """An estimator with those within it."""
    name = content["estimator"]
    if not isinstance(name, str) or name not in RECORDS:
        return _restored_model(content, read)
    parts = content.get("models", [])
    if not isinstance(parts, list) or "imputed" in content:
        raise ModelFileError(f"it is no {name} with its models")
    within: list[Any] = []
    for k, part in enumerate(parts):
        if isinstance(part, str) and part in ("passthrough", "drop"):
            within.append(part)
        elif isinstance(part, dict) and set(part) - OPTIONAL == CONTENT:
            within.append(_restored(part, lambda member, k=k: read(f"{k}/{member}")))  # type: ignore[misc]
        else:
            raise ModelFileError(f"its model {k} lacks entries or has unknown ones")
    found = put_together(name, content, read, within)
    if type(inner := getattr(found, "estimator", None)).__name__ in ESTIMATORS:
        refuse_invalid(inner)
    if name == "CalibratedMargin" or "calibrator" in content:
        found.calibrator_ = _calibrator(content.get("calibrator"), found.classes_.size)
    return found


def _restored_model(content: Record, read: Callable[[str], bytes]) -> Estimator:
    estimator = _unfitted(content["estimator"], content["settings"])
    form = form_of(estimator)
    learned = fitted.from_members(content["fitted"], read, form)
    form.check(learned)
    if content["certificate"] is not None:
        certificate = certificate_from_plain(content["certificate"])
        if isinstance(certificate, CertificateList):
            outputs = len(learned["intercept_"])
            if len(certificate) != outputs:
                raise ModelFileError(
                    f"it has {len(certificate)} certificates for {outputs} problems"
                )
            certificate = CertificateList(list(certificate), list(learned["classes_"]))
        learned["certificate_"] = certificate
    if "calibrator" in content:
        learned["calibrator_"] = _calibrator(content["calibrator"], len(learned["classes_"]))
    for name, value in learned.items():
        setattr(estimator, name, value)
    return _refilled(estimator, content["imputed"]) if "imputed" in content else estimator


def _calibrator(plain: object, n_classes: int) -> Calibrator:
    """A map that turns scores of so many classes into probabilities: it is tried on some."""
    found = CODEC.decode(plain, "calibrator_")
    scores = PROBES if n_classes == 2 else PROBES[:, None] * np.eye(n_classes)[0]
    try:
        with np.errstate(all="ignore"):
            shares = np.asarray(found.probabilities(scores))
            whole = shares.shape == (scores.shape[0], n_classes) and (shares >= 0).all()
            sound = whole and np.allclose(shares.sum(axis=1), 1.0)
    except Exception as error:  # forged parts fail in any way
        raise ModelFileError(f"its calibrator is no map of scores ({brief(error)})") from error
    if not (sound and isinstance(found, Calibrator)):
        raise ModelFileError("its calibrator does not give probabilities of the classes")
    return found


@contextmanager
def _explained(start: str, always: bool = False) -> Iterator[None]:
    """Errors that state only a reason become sentences about the file, or the estimator."""
    try:
        yield
    except ModelFileError as error:
        text = str(error)
        whole = text.endswith(".")
        said = f"{start}: {text}{'' if whole else '.'}"
        raise ModelFileError(text if whole and not always else said) from error


def _facts(estimator: Estimator) -> Record:
    name = name_of(estimator)
    if name is None:
        return _facts_of_model(estimator)
    _, _, within = parts_of(estimator)
    if name == "Pipeline" and hasattr(within[-1][1], "predict"):
        return _facts_of_pipeline(estimator)
    settings = RECORDS[name].settings(estimator)
    facts: Record = {
        "estimator": name,
        "settings": {parameter: _shown(each) for parameter, each in settings.items()},
    }
    names = _words(getattr(estimator, "feature_names_in_", None))
    if name in ("CalibratedMargin", "DDAGClassifier"):
        first = _facts(within[0][1])
        facts[OF_SEVERAL[name]] = first["estimator"]
        return facts | {
            "fits": len(within),
            "classes": [str(label) for label in estimator.classes_.tolist()],
            **{fact: first[fact] for fact in OF_FEATURES if fact in first},
            **({} if names is None or "columns" in first else {"feature_names": names}),
        }
    facts["features"] = int(estimator.n_features_in_)
    if hasattr(estimator, "get_support"):
        facts["features_selected"] = int(np.count_nonzero(estimator.get_support()))
    return facts | {"feature_names": names}


def _words(names: Iterable[str] | None) -> list[str] | None:
    return None if names is None else [str(each) for each in names]


def _facts_of_pipeline(pipeline: Estimator) -> Record:
    """Those of its model, whose features are called as the steps before it call them, and the
    columns of a table for it."""
    *before, (_, model) = pipeline.steps
    kept = [step for _, step in before if not isinstance(step, str | None)]
    columns, names = getattr(pipeline, "feature_names_in_", None), None
    with suppress(AttributeError, ValueError):
        names = None if columns is None else pipeline[:-1].get_feature_names_out()
    if name_of(model) is None and not hasattr(model, "feature_names_in_"):
        model = copy(_chosen(model))
        if names is not None:
            model.feature_names_in_ = names
    facts = _facts(model)
    facts["feature_names"] = facts["feature_names"] or _words(names)
    imputed = dict.fromkeys(_strategies(pipeline))
    steps = [type(step).__name__ for step in kept]
    is_renamed = columns is not None and _words(columns) != facts["feature_names"]
    return {
        **facts,
        **({"columns": _words(columns)} if is_renamed else {}),
        **({"imputed": ", ".join(imputed)} if imputed else {}),
        **({} if steps == ["SimpleImputer"] else {"steps": steps}),
    }


def _strategies(fitted: Estimator) -> list[str]:
    """Those of the imputers in a transformer."""
    if hasattr(fitted, "strategy"):
        return [fitted.strategy]
    within = getattr(fitted, "steps", getattr(fitted, "transformers_", ()))
    return [strategy for _, step, *_ in within for strategy in _strategies(step)]


def _facts_of_model(estimator: Estimator) -> Record:
    _refuse_unknown(estimator)
    learned = fitted.collect(estimator, form_of(estimator))
    width = int(learned["n_features_in_"])
    leading = leading_features(estimator)
    used = np.count_nonzero(learned["coef_"].any(axis=0)) if "coef_" in learned else width
    names = learned.get("feature_names_in_")
    certificate = getattr(estimator, "certificate_", None)
    return {
        "estimator": type(estimator).__name__,
        "settings": {n: _shown(each) for n, each in estimator.get_params(deep=False).items()},
        "classes": [str(label) for label in learned["classes_"].tolist()],
        "features": width,
        "features_used": int(used),
        **({"support_vectors": int(learned["support_"].size)} if "support_" in learned else {}),
        **({} if leading is None else {"top_features": leading}),
        "feature_names": _words(names),
        "intercept": [float(value) for value in learned["intercept_"]],
        **probabilities_of(estimator),
        "iterations": np.asarray(learned.get("n_iter_", 0)).tolist(),
        "certificate": None
        if certificate is None
        else {**{f: getattr(certificate, f) for f in CERTIFIED}, "summary": str(certificate)},
    }


def probabilities_of(estimator: Estimator) -> Record:
    """Whose the probabilities of a model are, if it has some; of calibrated scores of two classes
    also that of the second class on the boundary, where the predicted class changes."""
    found = getattr(estimator, "calibrator_", None)
    if found is None:
        own = "of the model" if hasattr(estimator, "predict_proba") else None
        return {"probabilities": own}
    boundary = {}
    if estimator.classes_.size == 2:
        boundary["boundary_probability"] = float(found.probabilities(np.zeros(1))[0, 1])
    return {"probabilities": "of calibrated scores", **boundary}


def _shown(value: object) -> object:
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


def leading_features(model: Estimator, most: int = TOP_FEATURES) -> list[Record] | None:
    """The features with the largest coefficients, of all classes; None for a nonlinear kernel."""
    if not hasattr(model, "coef_"):
        return None
    return [
        {
            "feature": str(each.feature),
            "class": str(each.label),
            "coefficient": each.coefficient,
            "coefficient_per_sd": None if np.isnan(each.per_deviation) else each.per_deviation,
        }
        for each in Ranked.of(model).top(most)
    ]
