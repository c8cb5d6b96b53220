"""The benchmark of device arrays: runs on the processor, and claims nothing without a GPU."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression

import proxmargin as pm
from benchmarks import device
from tests.shared_data import clouds


def asked(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    device.options(parser)
    return parser.parse_args(words)


def test_without_a_gpu_the_section_says_so_and_has_no_figures(
    monkeypatch, tmp_path: Path, capsys
) -> None:
    monkeypatch.setattr(device, "device", lambda kind: None)
    monkeypatch.setattr(device, "measured", lambda *_: pytest.fail("nothing to measure"))
    output = tmp_path / "device.md"
    assert device.main(asked("--output", str(tmp_path))) == 0
    assert device.NO_GPU in output.read_text()
    assert "|" not in output.read_text().split(device.NO_GPU)[1]
    assert device.NO_GPU in capsys.readouterr().out


def test_all_of_it_runs_on_the_processor(tmp_path: Path, capsys) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    output = tmp_path / "device.md"
    words = ("--device", "cpu", "--rows", "3000", "--features", "12", "--output", str(tmp_path))
    assert device.main(asked(*words)) == 0
    lines = [line.split(" | ") for line in output.read_text().splitlines() if line[:2] == "| "]
    head, *rows = lines
    assert "say nothing of a GPU" in output.read_text()
    assert [row[1].split(",")[0] for row in rows[:4]] == ["device", "memory"] * 2
    for here, there in (rows[:2], rows[2:4]):
        objectives = [float(row[head.index("objective")]) for row in (here, there)]
        gaps = [float(row[head.index("certified relative gap")]) for row in (here, there)]
        assert max(gaps) <= device.TOL
        assert objectives[0] == pytest.approx(objectives[1], rel=2 * device.TOL)


def test_transfers_are_counted_and_the_fit_is_the_same() -> None:
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    X, y = clouds(200, 5)
    there = device.Device("strict arrays", strict.asarray, lambda: None)
    with device.observed(there) as transfers:
        found = pm.HuberizedSVC(alpha=0.02, tol=1e-9).fit(there.place(X), y).coef_
    counted = transfers.nbytes
    np.testing.assert_allclose(found, pm.HuberizedSVC(alpha=0.02, tol=1e-9).fit(X, y).coef_, 1e-4)
    assert counted > X.shape[0] * 8  # scores, at least
    assert transfers.seconds > 0.0
    pm.HuberizedSVC(alpha=0.02).fit(there.place(X), y)
    assert transfers.nbytes == counted  # nothing is counted any longer


class Rival:
    """cuML's interface, by scikit-learn."""

    def __init__(self, *, C: float, l1_ratio: float, penalty: str, tol: float, max_iter: int):
        assert penalty == "elasticnet"
        self.model = LogisticRegression(
            C=C, l1_ratio=l1_ratio, solver="saga", tol=tol, max_iter=max_iter
        )
        if sklearn_needs_penalty():
            self.model.set_params(penalty=penalty)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.model.fit(X, y)
        self.coef_, self.intercept_ = self.model.coef_, self.model.intercept_


def sklearn_needs_penalty() -> bool:
    """Since scikit-learn 1.8 the share of the l1 norm says all, and the name is deprecated."""
    return tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)


def test_cuml_solves_the_same_problem(monkeypatch) -> None:
    rival = SimpleNamespace(LogisticRegression=Rival, __version__="of this test")
    monkeypatch.setattr(device, "_library", lambda name: rival if name == "cuml" else None)
    there = device.Device("memory", np.asarray, lambda: None)
    X, y = device.data(2500, 8)
    rough, sharp = device.cuml(there, X.astype(float), X, y)  # its steps stall in float32
    expected = device.estimator(device.RIVAL).fit(X, y).certificate_.primal
    assert "of this test, tol=0.0001" in rough[1]
    assert float(sharp[4]) <= device.TOL
    assert float(sharp[5]) == pytest.approx(expected, rel=2 * device.TOL)
