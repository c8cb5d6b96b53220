"""The time limit of fits of several classes, counted in products with the data on a fake clock."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

import proxmargin as pm
from proxmargin.compiled.clock import clock
from proxmargin.data.designs import DenseDesign
from proxmargin.models.limits.kappa import kappa_max, largest_kappa

CLASSES = 8
X, Y = make_classification(400, 50, n_informative=12, n_classes=CLASSES, random_state=0)
MODELS = [pm.SVC, pm.L2SVC, pm.DWD, pm.NuSVC, pm.MarginMPM, pm.MarginFDA, pm.LogisticRegression]
# products with the data that a class may take when no time is left: for its parameters, the norm of
# its data, its first step and its certificates
FEW = 40


@pytest.fixture
def products(monkeypatch) -> list[int]:
    """The number of columns of each product with the data that is computed from now on."""
    seen: list[int] = []
    for name in ("scores", "adjoint"):
        plain = getattr(DenseDesign, name)

        def counted(design, right, plain=plain):
            seen.append(right.shape[1])
            return plain(design, right)

        monkeypatch.setattr(DenseDesign, name, counted)
    return seen


def let_pass(monkeypatch, seconds: float) -> None:
    """Have every look at the clock take this long."""
    ticks = count()
    monkeypatch.setattr("proxmargin.compiled.clock.perf_counter", lambda: seconds * next(ticks))


def fitted(model):
    with pytest.warns(ConvergenceWarning, match="the time limit was reached"):
        return model.fit(X, Y)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_a_class_takes_one_cheap_step_when_its_share_of_the_time_is_over(
    make, monkeypatch, products
) -> None:
    monkeypatch.setattr("proxmargin.models.fitting.fitting.OVERRUN", np.inf)
    let_pass(monkeypatch, 1.0)
    model = fitted(make(time_limit=0.05))
    assert len(products) <= FEW * CLASSES
    assert model.certificate_.stop_reason.startswith("the time limit was reached")
    assert all(0 < one.gap < np.inf and one.n_iter == 1 for one in model.certificate_)
    assert all(one.solver != "none" for one in model.certificate_)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_classes_that_begin_long_after_the_limit_are_certified_where_they_start(
    make, monkeypatch
) -> None:
    let_pass(monkeypatch, 1.0)
    model = fitted(make(time_limit=0.05))
    first, *others = model.certificate_
    assert first.solver != "none"
    assert not np.any(model.coef_[1:])
    for one in others:
        assert one.solver == "none"
        assert one.stop_reason.startswith("the time limit was reached")
        assert 0 < one.gap < np.inf
        assert one.dual <= one.primal


def test_the_certificate_of_a_class_that_was_not_begun_covers_the_true_gap(monkeypatch) -> None:
    best = pm.L2SVC(tol=1e-9).fit(X, Y).certificate_
    let_pass(monkeypatch, 1.0)
    late = fitted(pm.L2SVC(time_limit=0.05)).certificate_
    for one, optimum in zip(late, best, strict=True):
        assert one.primal - optimum.dual <= one.gap * (1 + 1e-9)


@pytest.mark.parametrize("name", ["fda", "mpm"])
def test_kappa_after_the_deadline_is_a_lower_bound_by_few_products(name, products) -> None:
    signs = np.where(Y < CLASSES // 2, 1.0, -1.0)
    exact = kappa_max(X, signs, name)
    products.clear()
    shares = np.full(signs.size, 1 / signs.size)
    found = largest_kappa(DenseDesign(X), signs, shares, name, deadline=clock() - 1.0)
    assert 0.1 * exact <= found.lower <= exact * (1 + 1e-12)
    assert found.upper == np.inf
    assert len(products) <= 5
