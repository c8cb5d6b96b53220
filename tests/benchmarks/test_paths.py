"""The benchmark of paths: solvers that start from the solution before, certified one by one."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.datasets import load
from benchmarks.objective import Logistic, SquaredHinge, relative_gap
from benchmarks.peers.path_peers import PathProblem

from benchmarks import paths

DATA = "synthetic:60,30,5,0.3"
PEERS = [name for name, peer in paths.PEERS.items() if peer.package != "skglm"]  # these compile


def stated(name: str) -> PathProblem:
    """A path that the peer solves."""
    data, alphas = load(DATA), (0.2, 0.1, 0.05)
    peer = paths.PEERS[name]
    free = PathProblem(data.design, data.labels, Logistic(), alphas, 1.0)
    return free if peer.solves(free) is None else replace(free, fit_intercept=False)


@pytest.mark.parametrize("name", PEERS)
def test_every_strength_of_a_path_is_certified(name: str) -> None:
    peer = paths.PEERS[name]
    pytest.importorskip(peer.package)
    path = stated(name)
    found = peer.fit(replace(path, design=peer.prepared(path.design)), 1e-10)
    assert len(found.fits) == len(path.alphas)
    assert paths.worst_on(path)(found) <= 1e-6
    sizes = [np.abs(fit.coef).sum() for fit in found.fits]
    assert sizes == sorted(sizes)


def test_the_judge_of_a_path_sees_its_worst_solution() -> None:
    path = stated("margin_path")
    found = paths.PEERS["margin_path"].fit(path, 1e-8)
    bad = replace(found.fits[1], coef=found.fits[1].coef + 0.01)
    spoilt = replace(found, fits=(found.fits[0], bad, found.fits[2]))
    expected = relative_gap(path.at(path.alphas[1]), bad.coef, bad.intercept)
    assert paths.worst_on(path)(spoilt) == expected > 1e-4


@pytest.mark.slow
def test_a_run_writes_its_section(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    paths.options(parser)
    path = tmp_path / "RESULTS.md"
    words = ["--data", DATA, "--losses", "squared-hinge", "--alphas", "5", "--limit", "30"]
    words += ["--solvers", "margin_path", "liblinear", "--results", str(path)]
    assert paths.main(parser.parse_args(words)) == 0
    assert f"| {SquaredHinge().name}; {DATA} | margin_path | 0." in path.read_text()
