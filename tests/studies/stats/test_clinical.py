"""Clinical numbers against statsmodels, scikit-learn and simulations."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from proxmargin import L2SVC, CalibratedMargin
from proxmargin.studies.stats.clinical import THRESHOLDS, clinical_summary

RNG = np.random.default_rng(0)
SHARES = expit(RNG.normal(-0.5, 1.5, 300))
LABELS = np.where(RNG.random(300) < expit(0.3 + 0.8 * logit(SHARES)), "sick", "well")
FOUND = clinical_summary(LABELS, SHARES, "sick")
COVERED = 0.9  # of the simulations at least, by intervals of 95 %


def test_areas_and_errors_are_those_of_scikit_learn() -> None:
    assert FOUND.auc.value == pytest.approx(roc_auc_score(LABELS == "sick", SHARES))
    assert FOUND.brier == pytest.approx(brier_score_loss(LABELS == "sick", SHARES))


def test_rates_have_the_intervals_of_wilson_by_statsmodels() -> None:
    wilson = pytest.importorskip("statsmodels.stats.proportion").proportion_confint
    point = FOUND.predicted
    pairs = {
        "sensitivity": (point.tp, point.tp + point.fn),
        "specificity": (point.tn, point.tn + point.fp),
        "ppv": (point.tp, point.tp + point.fp),
        "npv": (point.tn, point.tn + point.fn),
    }
    for name, (hits, rows) in pairs.items():
        rate = getattr(point, name)
        assert rate.value == hits / rows
        assert (rate.low, rate.high) == pytest.approx(wilson(hits, rows, method="wilson"))


@pytest.mark.parametrize("clusters", [None, np.repeat(np.arange(60), 5)])
def test_calibration_is_the_logistic_regression_of_statsmodels(clusters) -> None:
    sm = pytest.importorskip("statsmodels.api")
    found = clinical_summary(LABELS, SHARES, "sick", groups=clusters)
    odds, y, binomial = logit(SHARES), (LABELS == "sick").astype(float), sm.families.Binomial()
    how = {"use_t": False}
    if clusters is not None:
        # without a factor for the number of coefficients
        how |= {"cov_type": "cluster", "cov_kwds": {"groups": clusters, "df_correction": True}}
    slope = sm.GLM(y, np.column_stack([odds, np.ones(300)]), binomial).fit(**how)
    large = sm.GLM(y, np.ones((300, 1)), binomial, offset=odds).fit(**how)
    tolerance = 1e-4 if clusters is None else 1e-2
    for ours, theirs in ((found.slope, slope), (found.intercept, large)):
        assert ours.value == pytest.approx(theirs.params[0], abs=1e-5)
        assert (ours.low, ours.high) == pytest.approx(theirs.conf_int()[0], abs=tolerance)


def test_net_benefit_is_that_of_the_counts() -> None:
    point = FOUND.thresholds[19]
    assert point.threshold == 0.2
    called, sick = SHARES >= 0.2, LABELS == "sick"
    benefit = (called & sick).mean() - (called & ~sick).mean() * 0.25
    assert point.net_benefit == pytest.approx(benefit)
    assert point.net_benefit_all == pytest.approx(sick.mean() - (~sick).mean() * 0.25)
    assert len(FOUND.thresholds) == THRESHOLDS.size


@pytest.mark.parametrize("threshold", [1.0, 1.5, -0.1, np.nan])
def test_a_threshold_without_a_net_benefit_is_refused(threshold) -> None:
    with pytest.raises(ValueError, match="thresholds must be numbers from 0 to below 1"):
        clinical_summary(["a", "b"], [0.1, 0.2], "a", thresholds=[0.5, threshold])


def test_misclassified_rows_are_listed_by_name_the_surest_first() -> None:
    ids = [f"P{k}" for k in range(4)]
    shares, y = [0.9, 0.2, 0.6, 0.4], ["a", "b", "b", "b"]
    found = clinical_summary(y, shares, "b", predicted=["b", "a", "b", "b"], ids=ids)
    assert [each["id"] for each in found.misclassified] == ["P0", "P1"]
    assert found.misclassified[0] == {
        "id": "P0",
        "true": "a",
        "predicted": "b",
        "probability": 0.9,
    }
    json.dumps(found.to_dict())
    assert len(repr(found).splitlines()) <= 20  # without the numbers along the thresholds
    assert f"{found.auc.value:.3f}" in found._repr_html_()


def test_separated_classes_have_an_interval_and_no_slope() -> None:
    found = clinical_summary([0] * 20 + [1] * 20, np.linspace(0.01, 0.99, 40), 1)
    assert found.auc.value == 1.0
    assert found.auc.high == 1.0
    assert 0.8 < found.auc.low < 0.9  # as of 20 rows that are all right
    assert np.isnan(found.slope.value)
    assert np.isfinite(found.intercept.value)


def simulated(area: float, n: int, rng) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n) < n // 2
    return y, norm.cdf(rng.standard_normal(n) + np.sqrt(2) * norm.ppf(area) * y)


@pytest.mark.slow
@pytest.mark.parametrize("area", [0.7, 0.9, 0.97])
def test_the_interval_of_the_area_covers(area) -> None:
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(200):
        auc = clinical_summary(*simulated(area, 100, rng), True, thresholds=()).auc
        inside.append(auc.low <= area <= auc.high)
    assert np.mean(inside) >= COVERED


FOLDS = np.arange(300) % 5


def test_the_area_of_folds_is_that_of_the_pairs_within_them() -> None:
    found = clinical_summary(LABELS, SHARES, "sick", folds=FOLDS).auc
    each = [np.arange(k, 300, 5) for k in range(5)]
    pairs = [np.prod(np.unique(LABELS[rows], return_counts=True)[1]) for rows in each]
    areas = [roc_auc_score(LABELS[rows] == "sick", SHARES[rows]) for rows in each]
    assert found.value == pytest.approx(np.average(areas, weights=pairs))
    # folds whose probabilities are of another scale are compared with themselves only
    other = clinical_summary(LABELS, SHARES / (1 + FOLDS), "sick", folds=FOLDS).auc
    assert other.value == pytest.approx(found.value)
    alone = clinical_summary(LABELS, SHARES, "sick", folds=np.arange(300))
    assert np.isnan(alone.auc.value)  # no fold has rows of both classes
    assert np.isfinite(alone.slope.value)


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(100), 3)])
def test_intervals_of_folds_have_the_variance_of_nadeau_and_bengio(groups) -> None:
    one = clinical_summary(LABELS, SHARES, "sick", groups=groups)
    many = clinical_summary(LABELS, SHARES, "sick", groups=groups, folds=FOLDS)
    wide = np.sqrt(1 + 5 / 4)
    width = [each.intercept.high - each.intercept.low for each in (one, many)]
    assert width[1] == pytest.approx(wide * width[0])
    assert many.slope.value - many.slope.low == pytest.approx(
        wide * (one.slope.value - one.slope.low)
    )
    for of in (lambda each: each.auc, lambda each: each.predicted.sensitivity):
        narrow, found = (of(each).high - of(each).low for each in (one, many))
        assert found == pytest.approx(wide * narrow, rel=0.1)
    assert "1 + 5 x 0.25 = 2.25" in many.method
    assert "Nadeau" not in one.method
    half = clinical_summary(LABELS, SHARES, "sick", folds=np.zeros(300), test_ratio=1.0)
    assert "= 2," in half.method


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the order of the rows")  # by chance
def test_intervals_of_folds_cover_the_truth_of_the_final_model() -> None:
    rng = np.random.default_rng(0)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(2, size=n)
        return rng.standard_normal((n, 8)) + 1.5 * y[:, None] * (np.arange(8) == 0), y

    def numbers(found) -> list:
        point = found.predicted
        return [found.auc, point.sensitivity, point.specificity, found.slope]

    model, folds = CalibratedMargin(L2SVC(tol=1e-4), cv=3), StratifiedKFold(5)
    inside = []
    for _ in range(200):
        X, y = drawn(100)
        shares, fold = np.empty(100), np.empty(100)
        for k, (train, test) in enumerate(folds.split(X, y)):
            shares[test] = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
            fold[test] = k
        others, labels = drawn(20_000)
        chances = model.fit(X, y).predict_proba(others)[:, 1]
        truth = numbers(clinical_summary(labels, chances, 1, thresholds=()))
        found = numbers(clinical_summary(y, shares, 1, folds=fold, thresholds=()))
        inside.append([f.low <= t.value <= f.high for f, t in zip(found, truth, strict=True)])
    covered = np.mean(inside, axis=0)
    print("area, sensitivity, specificity, slope:", covered)  # of which the documentation tells
    assert (covered >= COVERED).all(), covered


def test_intervals_of_groups_cover_where_those_of_rows_do_not() -> None:
    rng, groups = np.random.default_rng(2), np.repeat(np.arange(40), 5)
    area, share = norm.cdf(1.5 / np.sqrt(2.5)), norm.cdf(0.75 / np.sqrt(1.25))
    inside = {"rows": [], "area": [], "share": []}
    for _ in range(200):
        y = (rng.random(40) < 0.5)[groups]
        noise = rng.standard_normal(40)[groups] + rng.normal(0, 0.5, 200)
        shares = norm.cdf(1.5 * y - 0.75 + noise)
        plain = clinical_summary(y, shares, True, thresholds=()).auc
        found = clinical_summary(y, shares, True, groups=groups, thresholds=())
        rate = found.predicted.sensitivity
        inside["rows"].append(plain.low <= area <= plain.high)
        inside["area"].append(found.auc.low <= area <= found.auc.high)
        inside["share"].append(rate.low <= share <= rate.high)
    assert np.mean(inside["rows"]) < COVERED
    assert np.mean(inside["area"]) >= COVERED
    assert np.mean(inside["share"]) >= COVERED


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((["a", "a"], [0.1, 0.2], "a"), "2 of 2 rows"),
        ((["a", "b"], [0.1], "a"), "shape"),
        ((["a", "b"], [0.1, 1.2], "a"), "from 0 to 1"),
    ],
)
def test_what_cannot_be_judged_is_told(arguments, told) -> None:
    with pytest.raises(ValueError, match=told):
        clinical_summary(*arguments)


def test_one_fold_needs_its_training_rows() -> None:
    with pytest.raises(ValueError, match="test_ratio"):
        clinical_summary(["a", "b"], [0.1, 0.8], "a", folds=[0, 0])


def test_what_no_row_tells_has_a_dash_in_place_of_a_rate_and_its_interval() -> None:
    found = clinical_summary(np.array([0, 1] * 20), np.full(40, 0.2), 1)
    line = next(each for each in str(found).splitlines() if each.startswith("ppv"))
    assert line.split() == ["ppv", "-", "-"]
