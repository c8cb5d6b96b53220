"""The watch of the accelerated methods sees every product, prox and certificate."""

from __future__ import annotations

from time import process_time

import numpy as np
from benchmarks.watch import PARTS, Course, watched

from proxmargin import DWD


def test_passes_are_told_apart_from_those_of_certificates_and_nothing_stays_patched() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, 0] + rng.normal(size=60) > 0
    with watched(process_time) as watch:
        course = Course(watch=watch)
        DWD(nu=0.4, solver="fapg", callbacks=[course]).fit(X, y)
    seen = dict(watch.calls)
    assert watch.certificate_passes > 0
    assert min(seen[part] for part in PARTS) > 0
    last = course.rows[-1]
    assert 0 < last["own_passes"] < last["n_passes"]
    DWD(nu=0.4, solver="fapg").fit(X, y)
    assert watch.calls == seen
