"""The benchmark of cross-validation: every model of every fold is certified on its own rows."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.datasets import load
from benchmarks.objective import Logistic, relative_gap
from benchmarks.peers.cv_peers import CvProblem, RemoteCv
from benchmarks.peers.path_peers import FittedPath

from benchmarks import cv

DATA = "synthetic:63,20,5,0.3"
SETTING = {
    "proxmargin auto": 1e-8,
    "GridSearchCV": 1e-8,
    "glmnet": 1e-16,
    "glmnet-modified": 1e-18,
    "adelie": 1e-16,
}


def stated(name: str) -> CvProblem:
    """A problem that the peer solves."""
    data, alphas = load(DATA), (0.2, 0.1, 0.05)
    free = CvProblem(data.design, data.labels, Logistic(), alphas, 1.0, n_folds=4)
    return free if cv.PEERS[name].solves(free) is None else replace(free, fit_intercept=False)


def listed() -> list[object]:
    remote = [name for name, peer in cv.PEERS.items() if isinstance(peer, RemoteCv)]
    return [
        pytest.param(name, marks=[pytest.mark.slow] if name in remote else []) for name in cv.PEERS
    ]


@pytest.mark.parametrize("name", listed())
def test_every_model_of_every_fold_is_certified(name: str) -> None:
    peer = cv.PEERS[name]
    if peer.missing:
        pytest.skip(peer.missing)
    problem = stated(name)
    prepared = replace(problem, design=peer.prepared(problem.design))
    found = peer.fit(prepared, SETTING.get(name, 1e-9))
    assert cv.worst_of_folds(peer, problem)(found.packed()) <= 1e-6
    assert len(found.folds) == 4
    assert found.whole is not None or peer.mark == "no path of all rows"


def test_folds_hold_out_every_sample_once_and_each_class_in_proportion() -> None:
    problem = stated("GridSearchCV")
    for k in range(problem.n_folds):
        training = problem.training(k)
        held = problem.labels.size - training.labels.size
        assert held in (15, 16)
        assert np.count_nonzero(training.labels > 0) in (23, 24)
    sizes = [problem.training(k).labels.size for k in range(problem.n_folds)]
    assert sum(sizes) == 3 * problem.labels.size


def test_the_judge_sees_one_bad_model_of_one_fold() -> None:
    problem, peer = stated("GridSearchCV"), cv.PEERS["GridSearchCV"]
    found = peer.fit(problem, 1e-8)
    first, second, third = found.folds[2]
    bad = replace(second, coef=second.coef + 0.01)
    folds = (*found.folds[:2], FittedPath.of((first, bad, third)), found.folds[3])
    expected = relative_gap(problem.training(2).at(problem.alphas[1]), bad.coef, bad.intercept)
    spoilt = replace(found, folds=folds)
    assert cv.worst_of_folds(peer, problem)(spoilt) == expected > 1e-4


@pytest.mark.slow
def test_a_run_writes_its_section(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    cv.options(parser)
    path = tmp_path / "cv.md"
    words = ["--data", DATA, "--alphas", "3", "--folds", "3", "--l1-ratios", "1"]
    words += ["--solvers", "GridSearchCV", "--results", str(tmp_path)]
    assert cv.main(parser.parse_args(words)) == 0
    assert f"| logistic; {DATA} | GridSearchCV | 0." in path.read_text()
