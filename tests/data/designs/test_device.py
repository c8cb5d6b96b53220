"""Device arrays: strict array-API arrays and PyTorch on the processor stand for a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import proxmargin as pm
from proxmargin.data.designs.blocks.device import DeviceDesign, namespace_of
from tests.shared_data import clouds

MODELS = {
    "huberized": pm.HuberizedSVC(alpha=0.02, tol=1e-9),
    "standardized": pm.SparseLogisticRegression(alpha=0.01, standardize=True, tol=1e-9),
    "logistic": pm.LogisticRegression(C=0.05, tol=1e-9),
    "distance weighted": pm.DWD(tol=1e-9),
    "MM-FDA": pm.MarginFDA(tol=1e-9),
    "MM-MPM": pm.MarginMPM(tol=1e-9, standardize=True),
}


def on_device(library: str, X: np.ndarray) -> Any:
    if library == "array_api_strict":
        strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        return strict.asarray(X)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.asarray(X)


every_library = pytest.mark.parametrize("library", ["array_api_strict", "torch"])


@every_library
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_model_is_that_of_the_data_in_memory(library: str, name: str, dtype: Any) -> None:
    X, y = clouds(200, 5)
    X = X.astype(dtype)
    there = on_device(library, X)
    model = MODELS[name]
    found = model.fit(there, y)
    streamed, ours = found.coef_, found.certificate_
    expected = model.fit(X.astype(float), y)
    assert ours.converged
    assert ours.primal == pytest.approx(expected.certificate_.primal, rel=1e-8)
    np.testing.assert_allclose(streamed, expected.coef_, rtol=1e-3, atol=1e-3)
    model.fit(there, on_device(library, y))
    np.testing.assert_array_equal(model.predict(there), model.predict(X.astype(float)))
    assert model.score(there, y) == model.score(X.astype(float), y)


@every_library
def test_scores_take_labels_and_weights_on_the_device(library: str, monkeypatch) -> None:
    X, y = clouds(200, 5)
    y, weights = y.astype(np.int64), np.arange(200.0)
    there = on_device(library, X)
    model = pm.LogisticRegression(C=0.05).fit(there, on_device(library, y))
    if library == "torch":  # a tensor on another device does not become an array by itself
        tensor = type(there)
        monkeypatch.delattr(tensor, "__array__")
    found = model.score(there, on_device(library, y), on_device(library, weights))
    monkeypatch.undo()
    assert found == pytest.approx(model.score(X, y, weights))
    np.testing.assert_allclose(model.predict_proba(there), model.predict_proba(X), rtol=1e-12)
    pd = pytest.importorskip("pandas")
    assert model.score(there, pd.Series(y)) == model.score(X, y)


@every_library
def test_products_on_the_device_are_those_of_the_matrix(library: str, rng, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.blocks.device.BLOCK_ENTRIES", 30)
    X, coef, dual = rng.standard_normal((17, 4)), rng.random((4, 2)), rng.random((17, 2))
    there = on_device(library, X)
    design = DeviceDesign(there, namespace_of(there))
    close = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(design.scores(coef), X @ coef, **close)
    np.testing.assert_allclose(design.adjoint(dual), X.T @ dual, **close)
    np.testing.assert_allclose(
        design.gram(dual[:, 0], np.ones(4)), (X - 1).T @ (dual[:, :1] * (X - 1)), **close
    )
    exact = (X.astype(np.longdouble).T @ dual.astype(np.longdouble)).astype(float)
    found = design.precise_adjoint(dual)
    assert np.all(np.abs(found.values - exact) <= found.error + 2e-16 * np.abs(exact))
    part = design.rows(np.array([3, 1]))
    np.testing.assert_allclose(part.scores(coef), X[[3, 1]] @ coef, **close)


@every_library
def test_bad_data_on_the_device_are_refused(library: str) -> None:
    X, y = clouds(50, 3)
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match=r"infinity .* in row 7, column 2"):
        pm.HuberizedSVC().fit(on_device(library, X), y)
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN in row 7, column 2"):
        pm.HuberizedSVC().fit(on_device(library, X), y)
    with pytest.raises(ValueError, match="float32 or float64"):
        pm.HuberizedSVC().fit(on_device(library, np.ones((4, 2), dtype=np.int64)), y[:4])
    with pytest.raises(ValueError, match="one label a row"):
        pm.HuberizedSVC().fit(on_device(library, np.ones((4, 2))), y)


def like(module: str, **facts: object) -> Any:
    """What is known of an array of a library that is not here."""
    kind = type("Array", (), {"__module__": module, "shape": (50, 3), "ndim": 2, **facts})
    return kind()


@pytest.mark.parametrize(
    ("array", "advice"),
    [
        (like("torch", dtype="torch.float16"), r"got torch.float16: give X.to\(torch.float32\)"),
        (like("torch", dtype="torch.bfloat16"), r"bfloat16: give X.to\(torch.float32\)"),
        (like("torch", dtype="torch.int64"), r"int64: give X.to\(torch.float64\)"),
        (like("cupy", dtype="float16", astype=None), r"float16: give X.astype\('float32'\)"),
        (like("cupy", dtype="bool", astype=None), r"bool: give X.astype\('float64'\)"),
        (like("torch", dtype="torch.complex64"), r"got torch.complex64(?!: give)"),
        (like("torch", dtype="torch.float32", layout="torch.sparse_csr"), r"sparse_csr.*csr_array"),
        (like("cupyx.scipy.sparse._csr", dtype="float64", todense=None), r"SciPy, X.get\(\)"),
        (like("jax.experimental.sparse.bcoo", dtype="float32", todense=None), r"X.todense\(\)"),
    ],
)
def test_what_to_type_for_arrays_that_no_device_computes_with(array: Any, advice: str) -> None:
    _, y = clouds(50, 3)
    model = pm.LogisticRegression()
    with pytest.raises(ValueError, match=advice):
        model.fit(array, y)
    model.fit(*clouds(50, 3))
    with pytest.raises(ValueError, match=advice):
        model.predict(array)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_product_of_a_multiple_of_the_swept_dual_point_needs_no_pass(rng, sign: float) -> None:
    X, dual = rng.standard_normal((20_000, 3)), rng.standard_normal(20_000)
    dual[::7] = 0.0
    for swept in (dual, np.maximum(sign * dual, 0.0) * sign):
        design = DeviceDesign(X, np)
        sides = np.stack([np.maximum(swept, 0.0), np.minimum(swept, 0.0)], axis=1)
        design._known = swept, X.T @ sides
        asked = np.where(swept > 0.0, 0.3, 0.7) * swept
        np.testing.assert_allclose(design.adjoint(asked[:, None])[:, 0], X.T @ asked, atol=1e-11)
        assert design.counter.passes == 0.0
        for place in (0, 1, 10_001, 19_999):
            other = asked.copy()
            other[place] += 1e-3
            np.testing.assert_allclose(
                design.adjoint(other[:, None])[:, 0], X.T @ other, atol=1e-11
            )
        assert design.counter.passes == 4.0
        asked[3] = np.nan
        assert np.isnan(design.adjoint(asked[:, None])).all()
