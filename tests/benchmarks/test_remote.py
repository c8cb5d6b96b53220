"""Packages in processes of their own: they solve the same problem, and say what went wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.datasets import load
from benchmarks.objective import Logistic, alpha_max
from benchmarks.peers.own import OwnPeer
from benchmarks.peers.path_peers import FittedPath, OwnPath, PathProblem, RemotePath
from benchmarks.peers.remote import PACKAGES, RemotePackage
from scipy.sparse import csr_matrix

DATA = "synthetic:60,30,5,0.3"
TIGHT = {"glmnet": 1e-18, "adelie": 1e-18, "glum": 1e-8}
OURS = OwnPath(OwnPeer("ours", "auto"))
each_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda one: one.name)
pytestmark = pytest.mark.slow  # R, and another Python, take seconds to start


def stated(l1_ratio: float, fit_intercept: bool) -> PathProblem:
    data = load(DATA)
    blank = PathProblem(data.design, data.labels, Logistic(), (1.0,), l1_ratio, fit_intercept)
    most = alpha_max(blank.at(1.0), l1_ratio)
    return replace(blank, alphas=tuple(np.geomspace(most, 0.02 * most, 8)))


def objectives(path: PathProblem, found: FittedPath) -> np.ndarray:
    pairs = zip(path, found, strict=True)
    return np.array([problem.primal(fit.coef, fit.intercept) for problem, fit in pairs])


def skip_without(package: RemotePackage) -> None:
    if package.missing:
        pytest.skip(package.missing)


@each_package
def test_another_package_ends_at_our_objectives(package: RemotePackage) -> None:
    skip_without(package)
    for sparse in (False, True):
        data = load(DATA).design
        design = package.prepared(csr_matrix(data) if sparse else data)
        for l1_ratio in (1.0, 0.5):
            for free in (True, False):
                path = stated(l1_ratio, free)
                there = replace(path, design=design)
                theirs = RemotePath(package).fit(there, TIGHT[package.package])
                ours = OURS.fit(path, 1e-10)
                expected = objectives(path, ours)
                np.testing.assert_allclose(objectives(path, theirs), expected, rtol=1e-7)


@each_package
def test_trouble_is_an_error_and_the_next_command_is_answered(package: RemotePackage) -> None:
    skip_without(package)
    path = stated(1.0, True)
    there = replace(path, design=package.prepared(path.design))
    with pytest.raises(RuntimeError):
        there.design.ask("no-such-command", of="any")
    with pytest.raises(RuntimeError):
        package.asked("path", replace(there, labels=there.labels[:-1]), 1e-6)
    assert len(list(RemotePath(package).fit(there, 1e-6))) == len(path.alphas)


def test_a_server_ends_with_its_design() -> None:
    package = next((one for one in PACKAGES if not one.missing), None)
    if package is None:
        pytest.skip("no such package is installed")
    design = package.prepared(load(DATA).design)
    server, folder = design._server, design._folder
    assert server.poll() is None
    assert folder.exists()
    del design
    assert server.poll() is not None
    assert not folder.exists()
