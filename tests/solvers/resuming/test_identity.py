"""Whether two fits are the same is seen from every entry, and from what functions do."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from proxmargin import SVC, HuberizedSVC
from proxmargin.solvers.resuming.journal import Identity


def identity(model, X) -> Identity:
    return Identity.of(model, X, np.array([0, 1]), np.arange(X.shape[0]) % 2)


@pytest.mark.parametrize("form", [np.asfortranarray, np.ascontiguousarray, sp.csr_array])
@pytest.mark.parametrize("place", [(0, 0), (777, 13), (999, 39)])
def test_one_other_entry_is_other_data(form, place, rng) -> None:
    X = rng.standard_normal((1000, 40))
    other = X.copy()
    other[place] += 1e-9
    first, second = (identity(HuberizedSVC(), form(one)) for one in (X, other))
    assert "other entries" in str(second.objection(first))
    assert identity(HuberizedSVC(), form(X.copy())).objection(first) is None


def kernel_of(gamma: float):
    return lambda x, z: rbf_kernel(x, z, gamma=gamma)


@pytest.mark.parametrize("make", [kernel_of, lambda gamma: partial(rbf_kernel, gamma=gamma)])
def test_functions_that_do_something_else_are_told_apart(make, rng) -> None:
    X = rng.standard_normal((6, 2))
    first = identity(SVC(kernel=make(0.1)), X)
    assert identity(SVC(kernel=make(0.1)), X).objection(first) is None
    assert "kernel=" in str(identity(SVC(kernel=make(5.0)), X).objection(first))
