"""Losses of a rescaled margin are the losses that their formulas say."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin import HuberizedSVC, MarginClassifier
from proxmargin.losses import HuberizedHinge, Logistic, MarginLoss, Rescaled
from proxmargin.penalties import ElasticNet

DELTA = 0.4
METHODS = ("value", "descent", "curvature")
# a huberized hinge is another one whose distance from a margin of 1 is rescaled
PAIRS: dict[str, tuple[MarginLoss, MarginLoss]] = {
    "huberized hinge": (
        Rescaled(HuberizedHinge(1.0), height=DELTA, slope=1 / DELTA, shift=1 - 1 / DELTA),
        HuberizedHinge(DELTA),
    ),
    "as it is": (Rescaled(Logistic()), Logistic()),
}
MARGINS = np.linspace(-4.0, 4.0, 41)


@pytest.mark.parametrize("name", PAIRS)
def test_two_formulas_of_one_loss_agree(name: str) -> None:
    made, known = PAIRS[name]
    a = np.linspace(0.01, 0.99, 41) * known.dual_bound
    for method in METHODS:
        np.testing.assert_allclose(
            getattr(made, method)(MARGINS), getattr(known, method)(MARGINS), atol=1e-13
        )
    np.testing.assert_allclose(made.conjugate(a), known.conjugate(a), atol=1e-13)
    np.testing.assert_allclose(made.conjugate_slope(a), known.conjugate_slope(a), atol=1e-12)
    np.testing.assert_allclose(
        made.fenchel_young(MARGINS, a), known.fenchel_young(MARGINS, a), atol=1e-13
    )
    np.testing.assert_allclose(made.prox(MARGINS, 0.7), known.prox(MARGINS, 0.7), atol=1e-13)
    assert made.smoothness == pytest.approx(known.smoothness, rel=1e-14)
    assert made.dual_bound == pytest.approx(known.dual_bound, rel=1e-14)
    assert made.kinks == pytest.approx(known.kinks, abs=1e-14)


@pytest.mark.parametrize("name", PAIRS)
def test_so_do_their_scalar_functions(name: str) -> None:
    made, known = (phi.scalars for phi in PAIRS[name])
    assert made is not None
    assert known is not None
    assert made.zone() == pytest.approx(known.zone(), rel=1e-14)
    for t in MARGINS:
        for method in METHODS:
            expected = getattr(known, method)(t)
            assert getattr(made, method)(t) == pytest.approx(expected, abs=1e-13)
        assert made.fenchel_young(t, 0.3) == pytest.approx(known.fenchel_young(t, 0.3), abs=1e-13)


def test_sizes_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="height must be a finite number > 0, got 0"):
        Rescaled(Logistic(), height=0)
    with pytest.raises(ValueError, match="shift must be a finite number, got inf"):
        Rescaled(Logistic(), shift=np.inf)


@pytest.mark.slow  # kernels are compiled for it
def test_a_model_of_many_samples_and_few_features_takes_a_rescaled_loss(rng) -> None:
    y = np.where(np.arange(200) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((200, 3)) + 0.5 * y[:, None]
    loss, _ = PAIRS["huberized hinge"]
    model = MarginClassifier(loss, ElasticNet(0.02, 0.01), tol=1e-9).fit(X, y)
    same = HuberizedSVC(0.03, 2 / 3, delta=DELTA, tol=1e-9).fit(X, y)
    assert model.certificate_.converged
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-4)
