"""What nu_range and kappa_max have in common: weights, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.models.limits.kappa import kappa_max
from proxmargin.models.limits.nu import nu_range
from tests.models.limits.overlapping import sample


@pytest.mark.parametrize("function", [nu_range, lambda X, y, s=None: kappa_max(X, y, "mpm", s)])
def test_weights_are_repeated_rows(function, rng) -> None:
    X, y, s = sample("tall", rng, shift=0.05)
    rows = np.repeat(np.arange(40), s.astype(int))
    assert function(X, y, s) == pytest.approx(function(X[rows], y[rows]), rel=1e-6)


def test_bad_input_gets_one_clear_sentence(rng) -> None:
    X, y = rng.standard_normal((9, 2)), np.arange(9) % 3
    for function in (nu_range, lambda X, y: kappa_max(X, y, "fda")):
        with pytest.raises(ValueError, match="3 classes: nu and kappa are parameters of binary"):
            function(X, y)
        with pytest.raises(ValueError, match="at least 2 classes"):
            function(X, np.zeros(9))
        with pytest.raises(ValueError, match="NaN"):
            function(np.where(np.eye(9, 2) > 0, np.nan, X), y % 2)
    with pytest.raises(ValueError, match="model must be one of 'fda', 'mpm'"):
        kappa_max(X, y % 2, "qda")
