"""Tiny problems in units that are orders apart: certified, or ended early with a reason."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from proxmargin import DWD, L2SVC, SVC, ElasticNetSVC, HuberizedSVC, MulticlassSVC
from proxmargin.solvers.loop.report import Status

PROBLEMS = 30
# iterations of all solvers of a fit: a first-order method that stalls takes tens of thousands; a
# gap that is all rounding falls by chance for as long as one waits, 10,000 iterations at most
MOST = 11_000
# what rounding leaves unproved, by the reason that a fit gives
REASONS = (Status.ROUNDED.value, Status.UNBALANCED.value)


def in_uneven_units(rng: np.random.Generator, orders: float) -> np.ndarray:
    """Up to 30 samples of up to 10 features, each in a unit of its own."""
    n, p = rng.integers(6, 31), rng.integers(2, 11)
    return rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-orders, orders, p)


def ended(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[bool, str]:
    """Whether the fit is certified, and why it ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        told = model.fit(X, y).certificate_
    assert told.n_iter <= MOST, (told.n_iter, told.because)
    return told.converged, told.stop_reason


MODELS: dict[str, Callable[[np.random.Generator], Any]] = {
    "net": lambda rng: ElasticNetSVC(alpha=10.0 ** rng.uniform(-4, 0), l1_ratio=0.5),
    "squared hinge": lambda rng: L2SVC(C=10.0 ** rng.uniform(-3, 5)),
    "huberized hinge": lambda rng: HuberizedSVC(alpha=10.0 ** rng.uniform(-4, 0), l1_ratio=0.5),
    "hinge": lambda rng: SVC(C=10.0 ** rng.uniform(-3, 5), kernel="linear"),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("orders", [3.0, 12.0])
def test_units_that_are_orders_apart_leave_a_certificate_or_a_reason(make, orders: float) -> None:
    for seed in range(PROBLEMS):
        rng = np.random.default_rng(seed)
        X, model = in_uneven_units(rng, orders), make(rng)
        certified, reason = ended(model, X, np.arange(len(X)) % 2)
        assert certified or (orders > 3.0 and reason in REASONS), (seed, model, reason)


NETS: dict[str, Callable[[float], Any]] = {
    "huberized hinge": lambda ratio: HuberizedSVC(l1_ratio=ratio),
    "hinge": lambda ratio: ElasticNetSVC(l1_ratio=ratio),
}


@pytest.mark.parametrize(
    ("name", "ratio", "classes"),
    [
        *(("huberized hinge", ratio, 2) for ratio in (0.0, 0.5, 1.0)),
        *(("huberized hinge", ratio, 3) for ratio in (0.5, 1.0)),
        *(("hinge", ratio, 2) for ratio in (0.5, 1.0)),
    ],
)
def test_huge_units_of_all_features_leave_a_certificate_or_a_reason(name, ratio, classes) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = 1e12 * rng.standard_normal((30, 8)), np.arange(30) % classes
        certified, reason = ended(NETS[name](ratio), X, y)
        assert certified or reason in REASONS, (seed, reason)
        assert certified or ratio != 0.5, (seed, reason)


def test_what_all_classes_have_in_common_leaves_the_certificate_sharp() -> None:
    """Gradients of the classes are alike but for twelve digits, and only those enter the proof."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = 1e12 * rng.standard_normal((30, 8)), np.arange(30) % 3
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            told = MulticlassSVC(loss="lee", penalty="l2").fit(X, y).certificate_
        assert told.relative_gap < 2e-5


def test_balls_of_any_norm_are_certified() -> None:
    for seed in range(PROBLEMS):
        rng = np.random.default_rng(seed)
        X = in_uneven_units(rng, 1.0)
        model = DWD(norm=float(rng.choice([1.1, 1.5, 3.0, 20.0])))
        certified, reason = ended(model, X, np.arange(len(X)) % 2)
        assert certified, (seed, model, reason)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("penalty", ["group_linf", "group_l2"])
@pytest.mark.parametrize("loss", ["squared_hinge", "lee"])
@pytest.mark.parametrize("block", range(5))
def test_losses_within_a_budget_are_certified(loss: str, penalty: str, block: int) -> None:
    for seed in (2 * block, 2 * block + 1):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((15, 8)), np.arange(15) % 3
        model = MulticlassSVC(penalty=penalty, groups="features", loss=loss, C=None, eta=15.0)
        certified, reason = ended(model, X, y)
        assert certified, (seed, reason)


def test_a_kernel_beyond_double_precision_is_named() -> None:
    for seed in range(PROBLEMS // 10):
        X = np.random.default_rng(seed).standard_normal((20, 4))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", ConvergenceWarning)
            model = SVC(kernel="poly", degree=60).fit(X, np.arange(20) % 2)
        named = any(
            re.search(r"k\(x, x\) range from .* to .*e\+", str(each.message)) for each in told
        )
        assert named or model.certificate_.relative_gap <= model.tol
        assert model.n_iter_ <= MOST
