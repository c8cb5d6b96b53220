"""Models to store, files forged from them, and what it means that a model came back."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import zipfile
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from proxmargin import MarginClassifier, load_model, save_model
from proxmargin.files.tables.table import read_for_model
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList

CERTIFICATE = Certificate(
    primal=0.1 + 0.2,
    dual=-math.inf,
    gap=math.nan,
    relative_gap=1e-17,
    kkt_residual=5e-324,
    converged=False,
    stop_reason="out of time “é”",
    n_iter=12,
    n_passes=3.5,
    seconds=0.25,
    solver="apg",
    because="few samples",
)


def learned(classes=("no", "yes"), n_features=4, names=True, dtype=np.float64, **settings):
    """A model with attributes set by hand: what is stored is up to the test."""
    model = MarginClassifier(**settings)
    rng = np.random.default_rng(3)
    outputs = 1 if len(classes) == 2 else len(classes)
    model.classes_ = np.array(classes)
    model.coef_ = rng.standard_normal((outputs, n_features)).astype(dtype)
    model.coef_[:, 1] = 0.0
    model.intercept_ = rng.standard_normal(outputs).astype(dtype)
    model.n_features_in_ = n_features
    model.n_iter_ = 12
    if names:
        model.feature_names_in_ = np.array([f"größe={j}" for j in range(n_features)], dtype=object)
    model.certificate_ = CERTIFICATE
    return model


def read_columns(source: Any, names: Any, width: int, **options: Any) -> Any:
    """What a model with these names and this number of features reads."""
    model = SimpleNamespace(feature_names_in_=names, n_features_in_=width)
    return read_for_model(source, model, **options)


def there_and_back(model, folder: Path):
    save_model(model, folder / "model.pmz")
    return load_model(folder / "model.pmz")


def numbers(certificate):
    """The fields of each certificate, floats of NumPy as those of Python."""
    several = certificate if isinstance(certificate, CertificateList) else [certificate]
    return [
        {k: float(v) if isinstance(v, float) else v for k, v in dataclasses.asdict(one).items()}
        for one in several
    ]


def assert_same(first, second):
    assert type(first) is type(second)
    assert set(vars(first)) == set(vars(second))
    for name in vars(first):
        a, b = getattr(first, name), getattr(second, name)
        if sp.issparse(a):
            assert type(a) is type(b)
            assert a.shape == b.shape
            a, b = (np.concatenate([m.data, m.indices, m.indptr]) for m in (a, b))
        if isinstance(a, np.ndarray) and name.endswith("_"):
            assert a.dtype.kind == b.dtype.kind
            np.testing.assert_array_equal(a, b)
    assert first.n_features_in_ == second.n_features_in_
    for chosen in ("gamma_", "nu_", "kappa_"):
        np.testing.assert_array_equal(getattr(first, chosen, None), getattr(second, chosen, None))
    np.testing.assert_array_equal(first.n_iter_, second.n_iter_)
    assert repr(numbers(first.certificate_)) == repr(numbers(second.certificate_))
    assert repr(first.get_params(deep=False)) == repr(second.get_params(deep=False))


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def forged_file(
    folder: Path, model, change=lambda document: None, members=None, compression=zipfile.ZIP_STORED
) -> Path:
    """A file of the model whose document or members were changed by hand."""
    save_model(model, folder / "whole")
    with zipfile.ZipFile(folder / "whole") as source:
        content = {name: source.read(name) for name in source.namelist()}
    document = json.loads(content["model.json"])
    document = change(document) or document
    content.update(members or {})
    if isinstance(document, dict) and "members" in document:
        arrays = {name: data for name, data in content.items() if name.endswith(".npy") and data}
        document["members"] = {name: sha256(data).hexdigest() for name, data in arrays.items()}
    if "model.json" not in (members or {}):
        content["model.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(folder / "forged", "w", compression) as target:
        for name, data in content.items():
            if data is not None:
                target.writestr(name, data)
    return folder / "forged"
