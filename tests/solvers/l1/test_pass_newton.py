"""Newton's method in passes: how few they are, and the same model as other methods find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proxmargin import HuberizedSVC, LogisticRegression, SparseLogisticRegression, open_dataset


def planted(n: int = 4000, p: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    truth = np.where(np.arange(p) < 5, 1.0, 0.0)
    return X, (X @ truth + rng.logistic(size=n) > 0).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        HuberizedSVC(alpha=0.01, l1_ratio=0.9),
        SparseLogisticRegression(alpha=0.005, l1_ratio=1.0),
        LogisticRegression(C=1e-3),
    ],
    ids=["huberized", "sparse logistic", "logistic"],
)
def test_a_certified_model_takes_few_passes(model: Any, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 50_000)  # 300 of 4000 rows
    X, y = planted()
    certificate = model.fit(open_dataset(X, target=y, chunk_rows=500)).certificate_
    assert certificate.solver == "pass-newton"
    assert certificate.converged
    assert certificate.n_passes <= 15


@pytest.mark.parametrize("options", [{"sampled": False}, {"max_features": 8}], ids=str)
def test_data_in_memory_take_it_too(options: dict[str, Any]) -> None:
    X, y = planted()
    model = SparseLogisticRegression(alpha=0.03, l1_ratio=1.0, tol=1e-9)
    expected = model.fit(X, y).coef_
    model.set_params(solver="pass-newton", solver_options=options)
    found = model.fit(X, y)
    assert found.certificate_.converged
    np.testing.assert_allclose(found.coef_, expected, atol=1e-4)


def test_many_features_without_an_l1_penalty_are_refused() -> None:
    X, y = planted()
    model = LogisticRegression(solver="pass-newton", solver_options={"max_features": 8})
    with pytest.raises(ValueError, match="l1 penalty of every feature, or at most 8 features"):
        model.fit(X, y)
