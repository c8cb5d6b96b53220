"""The benchmark of stability selection counts what it says, and glmnet's entries are read right."""

from __future__ import annotations

import argparse

import numpy as np
import pytest
from benchmarks.peers.remote import R
from sklearn.base import clone

from benchmarks import stability
from proxmargin import StabilitySelection


@pytest.fixture
def small(monkeypatch):
    for name, value in {"PLANTED": "40,30,3", "PAIRS": 10, "CHOSEN": 4, "STRENGTHS": 6}.items():
        monkeypatch.setattr(stability, name, value)
    monkeypatch.setattr(stability, "CORRELATIONS", (0.0,))


def test_planted_features_are_counted(small) -> None:
    counts = stability.planted_counts(stability.LASSO, 0.0, 2)
    assert list(counts) == ["none", "unimodal", "r-concave"]
    for found in counts.values():
        assert found.shape == (2, 2)
        assert found[:, 0].max() <= 3
    assert counts["r-concave"].sum() >= counts["none"].sum()


def test_the_section_is_written(small, monkeypatch) -> None:
    written = []
    monkeypatch.setattr(stability, "write_section", lambda *parts: written.append(parts))
    parser = argparse.ArgumentParser()
    stability.options(parser)
    stability.main(parser.parse_args(["--seeds", "1", "--data", "--peers"]))
    ((name, _, body),) = written
    assert name == "stability"
    assert body.count("| 0 |") == 2 * 3 + 1
    assert "clusters" in body


@pytest.mark.slow
@pytest.mark.skipif(bool(R().missing("glmnet")), reason="R with glmnet is not installed")
def test_entries_of_glmnet_are_ours() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 30)), np.arange(60) % 2
    X[:, :3] += y[:, None]
    exact = clone(stability.LASSO).set_params(tol=1e-10)
    ours = StabilitySelection(
        exact, n_pairs=5, threshold=0.8, alphas=8, eps=0.1, random_state=3
    ).fit(X, y)
    entries, seconds = stability.peer_entries(X, y, ours, 1e-13)
    assert seconds >= 0
    np.testing.assert_array_equal(stability.entered(entries, 8), ours.frequencies_)
