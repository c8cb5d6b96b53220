"""Masked arrays of NumPy: nothing reads a mask, so that a masked entry is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from proxmargin import (
    SVC,
    CalibratedMargin,
    DDAGClassifier,
    HuberizedSVC,
    HuberizedSVCCV,
    MulticlassSVC,
    NuSVC,
    StabilitySelection,
    alpha_max,
    certify,
    compare,
    feature_report,
    kappa_max,
    margin_path,
    nu_range,
    open_dataset,
    permutation_test,
)

X, y = make_classification(40, 4, random_state=0)
FITTED = HuberizedSVC(alpha=0.1).fit(X, y)
BY_SAMPLE = ("sample_weight", "offset", "groups")

FITS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "HuberizedSVC": (HuberizedSVC().fit, ("sample_weight", "offset")),
    "SVC of a kernel": (SVC(kernel="rbf").fit, ("sample_weight", "offset")),
    "NuSVC": (NuSVC().fit, ("sample_weight",)),
    "MulticlassSVC": (MulticlassSVC().fit, ("sample_weight",)),
    "DDAGClassifier": (DDAGClassifier(SVC()).fit, ("sample_weight",)),
    "HuberizedSVCCV": (HuberizedSVCCV(3, cv=2).fit, BY_SAMPLE),
    "CalibratedMargin": (CalibratedMargin(SVC(), cv=2).fit, ("sample_weight", "groups")),
    "StabilitySelection": (StabilitySelection(HuberizedSVC(), pfer=1, q=2).fit, BY_SAMPLE),
    "margin_path": (partial(margin_path, HuberizedSVC()), ("sample_weight", "offset")),
    "alpha_max": (partial(alpha_max, HuberizedSVC()), ("sample_weight", "offset")),
    "nu_range": (nu_range, ("sample_weight",)),
    "kappa_max": (partial(kappa_max, model="mpm"), ("sample_weight",)),
    "compare": (partial(compare, progress=False), ("sample_weight", "groups")),
    "permutation_test": (partial(permutation_test, SVC()), ("groups",)),
    "certify": (partial(certify, FITTED), ("sample_weight", "offset")),
    "feature_report": (partial(feature_report, FITTED), ("sample_weight", "groups")),
    "score": (FITTED.score, ("sample_weight", "offset")),
    "score of a graph": (DDAGClassifier(SVC()).fit(X, y).score, ("sample_weight",)),
}


def masked(values: Any, *place: int) -> Any:
    found = np.ma.array(values)
    found[place] = np.ma.masked
    return found


@pytest.mark.parametrize(("fit", "by_sample"), FITS.values(), ids=FITS)
def test_a_masked_entry_is_refused_with_its_place(fit: Any, by_sample: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"X has a masked entry in row 3, column 1 .*X\.filled"):
        fit(masked(X, 3, 1), y)
    with pytest.raises(ValueError, match=r"y has a masked entry in row 5 \(counted from 0\)"):
        fit(X, masked(y, 5))
    for name in by_sample:
        with pytest.raises(ValueError, match=rf"{name} has a masked entry in row 7 \(counted"):
            fit(X, y, **{name: masked(np.arange(40) // 2, 7)})


def test_predictions_and_data_on_disk_refuse_a_mask_too() -> None:
    for predict in (FITTED.predict, FITTED.decision_function, HuberizedSVC().fit(X, y).predict):
        with pytest.raises(ValueError, match="X has a masked entry in row 3, column 1"):
            predict(masked(X, 3, 1))
    with pytest.raises(ValueError, match="path has a masked entry in row 3, column 1"):
        open_dataset(masked(X, 3, 1), target=y)
    with pytest.raises(ValueError, match="target has a masked entry in row 3"):
        open_dataset(X, target=masked(y, 3))


def test_a_masked_array_without_a_masked_entry_is_an_array() -> None:
    found = HuberizedSVC(alpha=0.1).fit(np.ma.array(X), np.ma.array(y), np.ma.ones(40))
    np.testing.assert_array_equal(found.coef_, FITTED.coef_)
    np.testing.assert_array_equal(found.predict(np.ma.array(X)), FITTED.predict(X))
