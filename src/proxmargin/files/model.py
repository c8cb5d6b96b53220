"""Model files: a fitted estimator in a zip archive of one JSON document and plain arrays.

``model.json`` holds the format's version, the estimator's name and parameters, small attributes
and the certificate; ``coef_.npy``, ``support_vectors_.data.npy`` and their like hold numbers.
Reading a file looks up names in a fixed list of classes and calls nothing but their constructors:
there is no pickle in it.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import proxmargin
from proxmargin.files import fitted, known
from proxmargin.files.archive import Archive, opened_archive, write_archive
from proxmargin.files.certificates import certificate_from_plain, certificate_to_plain
from proxmargin.files.errors import ModelFileError
from proxmargin.files.forms import Form, form_of
from proxmargin.files.settings import named_settings, to_plain
from proxmargin.files.wording import listed

__all__ = ["describe_model", "load_model", "save_model"]

FORMAT = "proxmargin model"
VERSION = 1
MANIFEST = "model.json"
_KEYS = {"format", "version", "proxmargin", "estimator", "settings", "fitted", "certificate"}
# Callbacks watch one fit; they are no part of the model.
_FORGOTTEN: dict[str, Any] = {"callbacks": ()}


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file that executes nothing when it is read.

    The file replaces an existing one in a single step: a process that dies while writing leaves
    the old file whole. Callbacks are not stored.

    Parameters
    ----------
    estimator : a fitted estimator of this library
    path : str or path
        Any name; ``.pmz`` is customary.

    Raises
    ------
    ModelFileError
        The estimator is not fitted, is of another class, has a parameter that cannot be stored
        (such as a random generator; the message names it), or the file cannot be written.
    """
    _refuse_unknown(estimator)
    settings, form = _settings(estimator), form_of(estimator)
    learned = fitted.collect(estimator, form)
    with _explained("This model cannot be stored"):
        form.check(learned)
    plain, arrays = fitted.to_members(learned)
    certificate = getattr(estimator, "certificate_", None)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "proxmargin": proxmargin.__version__,
        "estimator": type(estimator).__name__,
        "settings": settings,
        "fitted": plain,
        "certificate": None if certificate is None else certificate_to_plain(certificate),
    }
    document = json.dumps(manifest, indent=1, allow_nan=False).encode("ascii")
    write_archive(Path(path), {MANIFEST: document, **arrays})


def load_model(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator in a file written by `save_model`.

    Raises
    ------
    ModelFileError
        The file is missing, foreign, damaged, or from a newer format.
    """
    estimator, _ = _loaded(Path(path))
    return estimator


def describe_model(model: Any) -> dict[str, Any]:
    """Plain facts about a model, ready to print or to write as JSON.

    Parameters
    ----------
    model : a fitted estimator, or the path of a model file
    """
    if not isinstance(model, str | os.PathLike):
        return _facts(model)
    estimator, manifest = _loaded(Path(model))
    return {
        "source": os.fspath(model),
        "format_version": manifest["version"],
        "proxmargin": manifest["proxmargin"],
        **_facts(estimator),
    }


def _refuse_unknown(estimator: Any) -> None:
    name = type(estimator).__name__
    if name in known.COMPOSED:
        raise ModelFileError(f"A {name} cannot be stored: {known.COMPOSED[name]}.")
    if not known.is_known(known.ESTIMATORS, estimator):
        raise ModelFileError(
            f"A {type(estimator).__qualname__} cannot be stored; models that can: "
            f"{listed(known.ESTIMATORS, quote=False, at_most=len(known.ESTIMATORS))}."
        )


def _settings(estimator: Any) -> dict[str, Any]:
    parameters = {**estimator.get_params(deep=False)}
    parameters.update({name: value for name, value in _FORGOTTEN.items() if name in parameters})
    return {name: to_plain(value, name) for name, value in parameters.items()}


def _loaded(path: Path) -> tuple[Any, dict[str, Any]]:
    with opened_archive(path) as archive, _explained(f"{path}: not a valid model file"):
        manifest = _manifest(archive)
        estimator = _unfitted(manifest["estimator"], manifest["settings"])
        learned = _learned(manifest["fitted"], archive, form_of(estimator))
        if manifest["certificate"] is not None:
            learned["certificate_"] = certificate_from_plain(manifest["certificate"])
    for name, value in learned.items():
        setattr(estimator, name, value)
    return estimator, manifest


def _manifest(archive: Archive) -> dict[str, Any]:
    try:
        manifest = json.loads(
            archive.read(MANIFEST), parse_constant=_no_constant, object_pairs_hook=_distinct
        )
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelFileError(f"its {MANIFEST} cannot be read ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"its {MANIFEST} does not describe a proxmargin model")
    _refuse_newer(manifest)
    if set(manifest) != _KEYS or type(manifest["proxmargin"]) is not str:
        raise ModelFileError(f"its {MANIFEST} lacks entries or has unknown ones")
    return manifest


def _refuse_newer(manifest: dict[str, Any]) -> None:
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"it states no format version ({version!r})")
    if version > VERSION:
        raise ModelFileError(
            f"it has format version {version}, written by proxmargin "
            f"{manifest.get('proxmargin')!s:.40}; this proxmargin {proxmargin.__version__} reads "
            f"up to version {VERSION}: upgrade to read it"
        )


def _unfitted(name: Any, plain: Any) -> Any:
    kind = known.named(known.ESTIMATORS, name) if isinstance(name, str) else None
    if kind is None:
        raise ModelFileError(f"it names {name!r:.60}, which is no estimator of this version")
    settings = named_settings(plain, "settings")
    unknown = sorted(set(settings) - set(inspect.signature(kind).parameters))
    if unknown:
        raise ModelFileError(f"{name} has no parameters {listed(unknown)} in this version")
    return kind(**settings)


def _learned(plain: Any, archive: Archive, form: Form) -> fitted.Fitted:
    learned = fitted.from_members(plain, archive.read, form)
    if archive.names() != {MANIFEST} | fitted.array_members(plain):
        raise ModelFileError("it holds members that do not belong to a model")
    form.check(learned)
    return learned


@contextmanager
def _explained(start: str) -> Iterator[None]:
    """Errors that state only a reason become sentences about the file."""
    try:
        yield
    except ModelFileError as error:
        text = str(error)
        whole = text.endswith(".")
        raise ModelFileError(text if whole else f"{start}: {text}.") from error


def _no_constant(word: str) -> NoReturn:
    raise ModelFileError(f"its {MANIFEST} holds {word}, which is not JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ModelFileError(f"its {MANIFEST} names an entry twice")
    return dict(pairs)


def _facts(estimator: Any) -> dict[str, Any]:
    _refuse_unknown(estimator)
    learned = fitted.collect(estimator, form_of(estimator))
    width = int(learned["n_features_in_"])
    used = np.any(learned["coef_"] != 0, axis=0) if "coef_" in learned else np.ones(width, bool)
    names = learned.get("feature_names_in_")
    certificate = getattr(estimator, "certificate_", None)
    return {
        "estimator": type(estimator).__name__,
        "settings": {k: _shown(v) for k, v in estimator.get_params(deep=False).items()},
        "classes": [str(label) for label in learned["classes_"].tolist()],
        "features": width,
        "features_used": int(np.count_nonzero(used)),
        **({"support_vectors": int(learned["support_"].size)} if "support_" in learned else {}),
        "feature_names": None if names is None else [str(name) for name in names],
        "intercept": [float(value) for value in learned["intercept_"]],
        "iterations": np.asarray(learned.get("n_iter_", 0)).tolist(),
        "certificate": None if certificate is None else _certificate_facts(certificate),
    }


def _certificate_facts(certificate: Any) -> dict[str, Any]:
    fields = ("primal", "dual", "gap", "relative_gap", "kkt_residual", "converged", "stop_reason")
    more = ("n_iter", "n_passes", "seconds", "solver", "because")
    return {**{f: getattr(certificate, f) for f in fields + more}, "summary": str(certificate)}


def _shown(value: Any) -> Any:
    """Parameters as JSON prints them best; objects by their repr."""
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
