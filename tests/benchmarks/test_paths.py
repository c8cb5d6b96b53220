"""The benchmark of paths: solvers that start from the solution before, certified one by one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.datasets import load
from benchmarks.objective import Logistic, SquaredHinge, relative_gap
from benchmarks.peers import other_environment
from benchmarks.peers.path_peers import FittedPath, PathProblem, PrototypePath, RemotePath

from benchmarks import path_runs, paths

DATA = "synthetic:60,30,5,0.3"
PEERS = [name for name, peer in paths.PEERS.items() if peer.package != "skglm"]  # these compile

TIGHT = {"glmnet": 1e-16, "adelie": 1e-16}  # of a change of the objective


def stated(name: str) -> PathProblem:
    """A path that the peer solves."""
    data, alphas = load(DATA), (0.2, 0.1, 0.05)
    peer = paths.PEERS[name]
    free = PathProblem(data.design, data.labels, Logistic(), alphas, 1.0)
    return free if peer.solves(free) is None else replace(free, fit_intercept=False)


def listed() -> Iterator[object]:
    """Every peer by name; a process of its own takes seconds to start, or kernels to compile."""
    for name in PEERS:
        is_long = isinstance(paths.PEERS[name], RemotePath | PrototypePath)
        yield pytest.param(name, marks=[pytest.mark.slow] if is_long else [])


@pytest.mark.parametrize("name", list(listed()))
def test_every_strength_of_a_path_is_certified(name: str) -> None:
    peer = paths.PEERS[name]
    if peer.missing:
        pytest.skip(peer.missing)
    path = stated(name)
    found = peer.fit(
        replace(path, design=peer.prepared(path.design)), TIGHT.get(peer.package, 1e-10)
    )
    assert paths.worst_on(path)(found.packed()) <= 1e-6
    sizes = [np.abs(fit.coef).sum() for fit in found]
    assert len(sizes) == len(path.alphas)
    assert sizes == sorted(sizes)


def test_the_judge_of_a_path_sees_its_worst_solution() -> None:
    path = stated("margin_path")
    found = paths.PEERS["margin_path"].fit(path, 1e-8)
    first, second, third = found
    bad = replace(second, coef=second.coef + 0.01)
    spoilt = FittedPath.of((first, bad, third))
    expected = relative_gap(path.at(path.alphas[1]), bad.coef, bad.intercept)
    assert paths.worst_on(path)(spoilt) == expected > 1e-4


@pytest.mark.slow
def test_a_run_writes_its_section(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    paths.options(parser)
    path = tmp_path / "paths.md"
    words = ["--data", DATA, "--losses", "squared-hinge", "--alphas", "5", "--limit", "30"]
    words += ["--solvers", "margin_path", "liblinear", "--results", str(tmp_path)]
    words += ["--l1-ratios", "1", "--goals", "1e-6"]
    assert paths.main(parser.parse_args(words)) == 0
    assert f"| {SquaredHinge().name}; {DATA} | margin_path | 0." in path.read_text()


def test_a_peer_that_is_not_installed_has_a_row_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXMARGIN_PEERS_VENV", str(tmp_path / "none"))
    other_environment.version.cache_clear()
    parser = argparse.ArgumentParser()
    paths.options(parser)
    results = tmp_path / "paths.md"
    words = ["--data", DATA, "--losses", "logistic", "--alphas", "3", "--l1-ratios", "1"]
    words += ["--solvers", "adelie", "--results", str(tmp_path)]
    assert paths.main(parser.parse_args(words)) == 0
    other_environment.version.cache_clear()
    assert f"| logistic; {DATA} | adelie | absent |" in results.read_text()
    assert "adelie is not installed" in results.read_text()


@pytest.mark.parametrize(("data", "end"), [("synthetic:20,60,5,0", 0.05), (DATA, 0.01)])
def test_strengths_end_lower_where_there_are_more_samples_than_features(data, end) -> None:
    parser = argparse.ArgumentParser()
    paths.options(parser)
    words = ["--data", data, "--l1-ratios", "0.5", "--alphas", "4"]
    ((_, _, alphas, l1_ratio, free),) = path_runs.grids(parser.parse_args(words), [Logistic()])
    assert alphas[-1] / alphas[0] == pytest.approx(end)
    assert (l1_ratio, free) == (0.5, True)
