"""The official packages reach the optimum of the models of the family."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from benchmarks.datasets import load
from benchmarks.family import Case, Regularized, Tail
from benchmarks.objective import Hinge, Logistic, SquaredHinge
from benchmarks.peers.base import absent
from benchmarks.peers.family import OwnFamilyPeer
from benchmarks.peers.family_official import AUGMENTED_PEERS, FREE_PEERS

MODELS = (
    Regularized(Hinge(), 0.02),
    Regularized(SquaredHinge(), 0.02),
    Regularized(Logistic(), 0.02),
    Tail(0.4),
)
SINGLE_PRECISION = {"Snap ML": 1e-5}


def fitted(peer: Any, case: Case) -> Any:
    """In a process of its own: Snap ML makes that of its import flush small numbers to zero."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(peer.fit, case, 1e-8).result()


@pytest.mark.slow
@pytest.mark.parametrize("peer", [*FREE_PEERS, *AUGMENTED_PEERS], ids=lambda peer: peer.name)
def test_an_official_package_reaches_the_optimum(peer: Any) -> None:
    if absent(peer):
        pytest.skip(absent(peer))
    data = load("synthetic:80,12,5,0.5")
    solved = 0
    for plain in MODELS:
        model = plain
        if peer in AUGMENTED_PEERS and isinstance(plain, Regularized):
            model = Regularized(plain.loss, plain.C, augmented=True)
        case = Case(data.design, data.labels, model)
        if peer.solves(case):
            solved += 1
            prepared = Case(peer.prepared(data.design), data.labels, model)
            found = fitted(peer, prepared)
            ours = OwnFamilyPeer("auto", "auto", 60.0).fit(case, 1e-9)
            duals = [one for one in (ours.dual, found.dual) if one is not None]
            wanted = SINGLE_PRECISION.get(peer.name, 1e-6)
            assert model.relative_gap(case, found, duals) <= wanted, model
            sides = data.design @ found.coef + found.intercept
            if isinstance(model, Regularized):
                agreed = np.sign(sides) == np.sign(data.design @ ours.coef + ours.intercept)
                assert agreed.mean() > 0.97
    assert solved > 0
