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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from proxmargin.certificates.certificate import CertificateList
from proxmargin.estimators.coefficients import Ranked
from proxmargin.estimators.registry import CROSS_VALIDATED
from proxmargin.files.errors import ModelFileError
from proxmargin.files.models import fitted, known
from proxmargin.files.models.archive import Archive, opened_archive, write_archive
from proxmargin.files.models.certificates import certificate_from_plain, certificate_to_plain
from proxmargin.files.models.forms import form_of
from proxmargin.files.models.imputed import put_together, taken_apart
from proxmargin.files.models.manifest import (
    MANIFEST,
    SIGNATURE,
    Sign,
    Verify,
    document_of,
    read_manifest,
    read_member,
    signature_of,
)
from proxmargin.files.models.settings import complete_settings, to_plain
from proxmargin.files.models.validity import refuse_invalid
from proxmargin.files.wording import listed

__all__ = ["describe_model", "leading_features", "load_model", "save_model"]

TOP_FEATURES = 10  # that the facts about a model name

# Callbacks watch one fit; they are no part of the model.
_FORGOTTEN: dict[str, Any] = {"callbacks": ()}


def save_model(estimator: Any, path: str | os.PathLike[str], *, sign: Sign | None = None) -> None:
    """Write a fitted estimator to a file that executes nothing when it is read.

    The file replaces an existing one in a single step: a process that dies while writing leaves
    the old file whole. Callbacks are not stored.

    Parameters
    ----------
    estimator : a fitted estimator of this library
        Of one that chose its strength by cross-validation the chosen model, ``best_estimator_``.
        A pipeline of a fitted ``SimpleImputer`` of NaN and such an estimator is stored with the
        values that it fills in, and read as such a pipeline.
    path : str or path
        Any name; ``.pmz`` is customary.
    sign : callable (bytes) -> bytes, optional
        Makes the signature that is stored with the model, for `load_model` to verify: of the JSON
        document, which holds the SHA-256 of everything else.

    Raises
    ------
    ModelFileError
        The estimator is not fitted, is of another class, has a parameter that cannot be stored
        (such as a random generator; the message names it) or fitted, or numbers that are not
        finite, or the file cannot be written.
    """
    estimator, imputed = taken_apart(_chosen(estimator))
    _refuse_unknown(estimator)
    form = form_of(estimator)
    settings = _settings(estimator)
    learned = fitted.collect(estimator, form)
    with _explained("This model cannot be stored"):
        _unfitted(type(estimator).__name__, settings)
        form.check(learned)
    plain, arrays = fitted.to_members(learned)
    certificate = getattr(estimator, "certificate_", None)
    content = {
        "estimator": type(estimator).__name__,
        "settings": settings,
        "fitted": plain,
        "certificate": None if certificate is None else certificate_to_plain(certificate),
        **({} if imputed is None else {"imputed": imputed}),
    }
    document = document_of(content, arrays)
    signature = {} if sign is None else {SIGNATURE: signature_of(document, sign)}
    write_archive(Path(path), {MANIFEST: document, **signature, **arrays})


def load_model(path: str | os.PathLike[str], *, verify: Verify | None = None) -> Any:
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
    """
    estimator, _ = _loaded(Path(path), verify)
    return estimator


def describe_model(model: Any) -> dict[str, Any]:
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
    }


def _chosen(estimator: Any) -> Any:
    """The model itself, or the one that cross-validation chose."""
    if type(estimator).__name__ not in CROSS_VALIDATED:
        return estimator
    if not hasattr(estimator, "best_estimator_"):
        raise ModelFileError(f"This {type(estimator).__name__} has chosen no model: fit it first.")
    return estimator.best_estimator_


def _refuse_unknown(estimator: Any) -> None:
    name = type(estimator).__name__
    instead = {**known.COMPOSED, **known.OTHERS}
    if name in instead:
        raise ModelFileError(f"A {name} cannot be stored: {instead[name]}.")
    if not known.is_known(known.ESTIMATORS, estimator):
        raise ModelFileError(
            f"A {type(estimator).__qualname__} cannot be stored; models that can: "
            f"{listed(known.ESTIMATORS, quote=False, at_most=len(known.ESTIMATORS))}."
        )


def _settings(estimator: Any) -> dict[str, Any]:
    parameters = {**estimator.get_params(deep=False), **estimator._in_order()}
    parameters.update({name: value for name, value in _FORGOTTEN.items() if name in parameters})
    return {name: to_plain(value, name) for name, value in parameters.items()}


def _loaded(path: Path, verify: Verify | None = None) -> tuple[Any, dict[str, Any]]:
    with opened_archive(path) as archive, _explained(f"{path}: not a valid model file"):
        manifest = read_manifest(archive, verify)
        estimator = _unfitted(manifest["estimator"], manifest["settings"])
        for name, value in _learned(manifest, archive, estimator).items():
            setattr(estimator, name, value)
        estimator = put_together(estimator, manifest.get("imputed"))
    return estimator, manifest


def _unfitted(name: Any, plain: Any) -> Any:
    """The estimator with settings that it could have been fitted with."""
    kind = known.named(known.ESTIMATORS, name) if isinstance(name, str) else None
    if kind is None:
        raise ModelFileError(f"it names {name!r:.60}, which is no estimator of this version")
    parameters = list(inspect.signature(kind).parameters)
    settings = complete_settings(plain, parameters, name)
    kept = [
        each
        for each, empty in _FORGOTTEN.items()
        if repr(settings.get(each, empty)) != repr(empty)  # arrays do not compare
    ]
    if kept:
        raise ModelFileError(f"its settings hold {listed(kept)}, which are no part of a model")
    estimator = kind(**settings)
    refuse_invalid(estimator)
    return estimator


def _learned(manifest: dict[str, Any], archive: Archive, estimator: Any) -> fitted.Fitted:
    form, digests = form_of(estimator), manifest["members"]
    read = partial(read_member, archive, digests=digests)
    learned = fitted.from_members(manifest["fitted"], read, form)
    if set(digests) != fitted.array_members(manifest["fitted"]):
        raise ModelFileError("it holds members that do not belong to a model")
    form.check(learned)
    if manifest["certificate"] is not None:
        certificate = certificate_from_plain(manifest["certificate"])
        if isinstance(certificate, CertificateList):
            _check_certificates(certificate, len(learned["intercept_"]))
            certificate = CertificateList(list(certificate), list(learned["classes_"]))
        learned["certificate_"] = certificate
    return learned


def _check_certificates(certificates: CertificateList, outputs: int) -> None:
    if len(certificates) != outputs:
        raise ModelFileError(f"it has {len(certificates)} certificates for {outputs} problems")


@contextmanager
def _explained(start: str) -> Iterator[None]:
    """Errors that state only a reason become sentences about the file."""
    try:
        yield
    except ModelFileError as error:
        text = str(error)
        whole = text.endswith(".")
        raise ModelFileError(text if whole else f"{start}: {text}.") from error


def _facts(estimator: Any) -> dict[str, Any]:
    estimator, imputed = taken_apart(estimator)
    _refuse_unknown(estimator)
    learned = fitted.collect(estimator, form_of(estimator))
    width = int(learned["n_features_in_"])
    leading = leading_features(estimator)
    used = np.count_nonzero(learned["coef_"].any(axis=0)) if "coef_" in learned else width
    names = learned.get("feature_names_in_")
    certificate = getattr(estimator, "certificate_", None)
    return {
        "estimator": type(estimator).__name__,
        "settings": {k: _shown(v) for k, v in estimator.get_params(deep=False).items()},
        **({} if imputed is None else {"imputed": imputed["strategy"]}),
        "classes": [str(label) for label in learned["classes_"].tolist()],
        "features": width,
        "features_used": int(used),
        **({"support_vectors": int(learned["support_"].size)} if "support_" in learned else {}),
        **({} if leading is None else {"top_features": leading}),
        "feature_names": None if names is None else [str(name) for name in names],
        "intercept": [float(value) for value in learned["intercept_"]],
        "iterations": np.asarray(learned.get("n_iter_", 0)).tolist(),
        "certificate": None if certificate is None else _certificate_facts(certificate),
    }


def leading_features(model: Any, most: int = TOP_FEATURES) -> list[dict[str, Any]] | None:
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


def _certificate_facts(certificate: Any) -> dict[str, Any]:
    fields = ("primal", "dual", "gap", "relative_gap", "kkt_residual", "converged", "stop_reason")
    more = ("n_iter", "n_passes", "seconds", "solver", "because")
    return {**{f: getattr(certificate, f) for f in fields + more}, "summary": str(certificate)}


def _shown(value: Any) -> Any:
    """Parameters as JSON prints them best; objects by their repr."""
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
