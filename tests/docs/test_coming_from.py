"""Each row of docs/coming-from is the same model in both programs.

A row holds the code of either side between backquotes; both are run on the same small data. What R
computed is stored in coming_from/models.json.
"""

from __future__ import annotations

import csv
import json
import re
import warnings
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy
from sklearn import linear_model, multiclass, svm
from sklearn.impute import SimpleImputer
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import proxmargin
from proxmargin.losses import DistanceWeighted, Rescaled
from proxmargin.penalties import Ridge

PAGES = Path(__file__).parents[2] / "docs" / "coming-from"
DATA = Path(__file__).parent / "coming_from"
QUOTED = re.compile(r"^`([^`]+)`$")
with (DATA / "data.csv").open() as opened:
    TABLE = list(csv.DictReader(opened))
X = np.array([[float(row[f"x{j}"]) for j in range(6)] for row in TABLE])
NUMBERS = {
    name: np.array([float(row[name]) for row in TABLE])
    for name in ("y", "class", "weight", "offset", "fold")
}
y, k, foldid = (NUMBERS[name].astype(int) for name in ("y", "class", "fold"))
w, o = NUMBERS["weight"], NUMBERS["offset"]
f = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0])
alphas = [0.15, 0.1, 0.06, 0.03, 0.02, 0.01]
R = json.loads((DATA / "models.json").read_text())


def cells(page: str, heading: str) -> list[list[str]]:
    """The cells of the tables of a page with this heading, row by row."""
    found, inside = [], False
    for line in (PAGES / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            row = [cell.strip() for cell in line.strip("|").split("|")]
            inside = row[0] == heading or (inside and row[0] != heading)
            if inside and row[0] != heading and not set(line) <= set("|-: "):
                found.append(row)
        else:
            inside = False
    assert found
    return found


def code(cell: str) -> str:
    matched = QUOTED.match(cell)
    assert matched, cell
    return matched[1]


def names(**more: Any) -> dict[str, Any]:
    """What the code on a page may use."""
    public = {name: getattr(proxmargin, name) for name in proxmargin.__all__}
    lasso = proxmargin.SparseLogisticRegression(l1_ratio=1.0, standardize=True, tol=1e-10)
    return {
        **public,
        "np": np,
        "scipy": scipy,
        "proxmargin": proxmargin,
        "svm": svm,
        "linear_model": linear_model,
        "multiclass": multiclass,
        "make_pipeline": make_pipeline,
        "PolynomialFeatures": PolynomialFeatures,
        "StandardScaler": StandardScaler,
        "SimpleImputer": SimpleImputer,
        "PredefinedSplit": PredefinedSplit,
        "confusion_matrix": confusion_matrix,
        "Rescaled": Rescaled,
        "DistanceWeighted": DistanceWeighted,
        "Ridge": Ridge,
        "X": X,
        "y": y,
        "k": k,
        "w": w,
        "o": o,
        "f": f,
        "n": len(y),
        "alphas": alphas,
        "foldid": foldid,
        "lasso": lasso,
        **more,
    }


def evaluated(text: str, space: dict[str, Any], labels: Any = y) -> Any:
    """The value of an expression; an estimator that is not fitted is fitted to the labels."""
    found = eval(text, space)
    if hasattr(found, "fit") and ".fit(" not in text:
        found = found.fit(space["X"], labels)
    return found


@pytest.fixture(scope="module")
def space() -> dict[str, Any]:
    """With the path and the search of the page on glmnet."""
    space = names()
    space["path"] = proxmargin.margin_path(space["lasso"], X, y, alphas=alphas)
    space["cv"] = proxmargin.SparseLogisticRegressionCV(
        alphas=alphas, cv=PredefinedSplit(foldid - 1), standardize=True, tol=1e-8
    ).fit(X, y)
    return space


def as_R(found: Any) -> np.ndarray:
    """The numbers that models.R keeps of such a result."""
    if isinstance(found, proxmargin.Path):
        return np.hstack([found.intercepts, found.coefs[:, 0]]).ravel()
    if isinstance(found, proxmargin.SVC | proxmargin.NuSVC):
        return found.decision_function(X)
    if hasattr(found, "coef_"):
        return np.column_stack([found.intercept_, found.coef_]).ravel()
    return np.ravel(found).astype(float)


OF_R = [row for row in cells("glmnet.md", "glmnet") + cells("other-r.md", "e1071") if row[0] != ""]
THINGS = [row for row in cells("glmnet.md", "") if row[0].isdigit()]
CALLED = re.compile(r"^`((?:glmnet|cv\.glmnet|svm|coef|predict)\([^`]*)`")


@pytest.mark.parametrize(("there", "here"), OF_R, ids=lambda cell: code(cell))
def test_a_row_of_R_has_the_same_numbers(there: str, here: str, space: dict[str, Any]) -> None:
    found = evaluated(code(here), space)
    model = type(found)(**{**found.get_params(deep=False), "tol": 1e-10})
    labels = k if ", k)" in here else y
    given = dict(re.findall(r"(sample_weight|offset)=([wo])\)", here))
    model.fit(X, labels, **{name: {"w": w, "o": o}[each] for name, each in given.items()})
    atol = 1e-4 if "svm(" in there else 1e-5  # as far as LIBSVM converges
    np.testing.assert_allclose(as_R(model), np.ravel(R[code(there)]), atol=atol)


@pytest.mark.parametrize("row", THINGS, ids=lambda row: row[0])
def test_the_line_for_each_thing_of_glmnet_runs_and_agrees(
    row: list[str], space: dict[str, Any]
) -> None:
    _, there, here, said = row
    if not here:
        assert "not here" in said
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = eval(code(here), space)
    called = CALLED.match(there)
    if called:
        np.testing.assert_allclose(as_R(found), np.ravel(R[called[1]]), atol=2e-5)


def test_all_things_are_there_and_the_count_is_right() -> None:
    assert [int(row[0]) for row in THINGS] == list(range(1, 45))
    missing = [row for row in THINGS if not row[2]]
    text = (PAGES / "glmnet.md").read_text(encoding="utf-8")
    assert f"Found: {44 - len(missing)}," in text


def test_the_columns_of_a_printed_path_and_the_scores_of_a_search_are_those_of_glmnet(
    space: dict[str, Any],
) -> None:
    path, cv = space["path"], space["cv"]
    np.testing.assert_array_equal(path.n_nonzero, R["df"])
    np.testing.assert_allclose(path.deviance_ratio, R["dev_ratio"], atol=1e-6)
    lasso = space["lasso"]
    assert proxmargin.alpha_max(lasso, X, y) == pytest.approx(R["default_lambda"][0], rel=1e-9)
    np.testing.assert_allclose(-2 * cv.cv_scores_[0].mean(axis=1), R["cv_mean"], atol=1e-5)


SKLEARN = [  # the rows of two programs; further ones say what is otherwise
    row for row in cells("scikit-learn.md", "scikit-learn") if all(map(QUOTED.match, row))
][:25]


def test_the_rows_of_scikit_learn_are_those_of_its_first_table() -> None:
    assert "LogisticRegression(C=np.inf)" in "".join(cell for row in SKLEARN for cell in row)
    assert "modified_huber" in SKLEARN[-1][0]


def scores_of(model: Any, data: np.ndarray = X) -> np.ndarray:
    return np.asarray(model.decision_function(data))


@pytest.mark.parametrize(("there", "here"), SKLEARN, ids=lambda cell: code(cell))
def test_a_row_of_scikit_learn_is_the_same_model(there: str, here: str) -> None:
    text = code(there)
    scaled = StandardScaler().fit_transform(X) if "SGDClassifier" in text else X
    space = names(X=scaled)
    mine = evaluated(code(here), space)
    if "SGDClassifier" in text:
        text = text[:-1] + ", learning_rate='adaptive', eta0=0.01, tol=1e-7, max_iter=5000)"
    elif "SVC(" in text and "Linear" not in text:
        text = re.sub(r"(\bSVC|NuSVC)\(", r"\1(tol=1e-8, ", text)
    else:
        text = re.sub(r"(LinearSVC|Regression)\(", r"\1(tol=1e-10, max_iter=100_000, ", text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = evaluated(text, space)
    if "SGDClassifier" not in text:
        np.testing.assert_allclose(scores_of(theirs), scores_of(mine), atol=1e-3)
        return
    certificate = proxmargin.certify(
        mine, scaled, y, coef=theirs.coef_, intercept=theirs.intercept_
    )
    least = mine.certificate_.primal
    assert -1e-6 <= (certificate.primal - least) / least <= 0.01


LIBLINEAR = cells("liblinear.md", "LIBLINEAR")


@pytest.mark.parametrize(("there", "here"), LIBLINEAR, ids=lambda cell: code(cell))
def test_a_row_of_liblinear_is_the_same_model(there: str, here: str) -> None:
    util = pytest.importorskip("liblinear.liblinearutil")

    def train(*data: Any) -> Any:
        *arrays, options = data
        return util.train(*arrays, f"{options} -e 1e-9 -q")

    scaled = StandardScaler().fit_transform(X)  # it takes at most 1000 passes
    space = names(X=scaled, train=train)
    model = eval(code(there), space)
    labels = k if "(k," in there else y
    mine = evaluated(code(here), space, labels)
    bias = 1.0 if "-B 1" in there else -1.0
    _, _, values = util.predict(labels, scaled, model, "-q")
    assert bias == model.bias
    theirs = np.array(values)
    if labels is y:
        theirs = theirs[:, 0] * (1 if model.get_labels()[0] == 1 else -1)
    else:
        theirs = theirs[:, np.argsort(model.get_labels())]
    np.testing.assert_allclose(theirs, scores_of(mine, scaled), atol=2e-4)


LIBSVM = cells("liblinear.md", "LIBSVM")


@pytest.mark.parametrize(("there", "here"), LIBSVM, ids=lambda cell: code(cell))
def test_a_row_of_libsvm_is_the_same_model(there: str, here: str) -> None:
    util = pytest.importorskip("libsvm.svmutil")

    def svm_train(labels: Any, data: Any, options: str) -> Any:
        return util.svm_train(labels, data, f"{options} -e 1e-8 -q")

    model = eval(code(there), names(svm_train=svm_train))
    _, _, values = util.svm_predict(y, X, model, "-q")
    theirs = np.array(values)[:, 0] * (1 if model.get_labels()[0] == 1 else -1)
    np.testing.assert_allclose(theirs, scores_of(evaluated(code(here), names())), atol=1e-4)


@pytest.mark.slow  # both compile their own kernels
@pytest.mark.parametrize(
    ("there", "here"), cells("skglm.md", "skglm, celer"), ids=lambda cell: code(cell)
)
def test_a_row_of_skglm_or_celer_is_the_same_model(there: str, here: str) -> None:
    package = code(there).partition(".")[0]
    space = names(**{package: pytest.importorskip(package)})
    signs = np.where(y == 1, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = evaluated(code(there), space, signs)
    found = X @ np.ravel(theirs.coef_) + np.ravel(theirs.intercept_)
    np.testing.assert_allclose(found, scores_of(evaluated(code(here), space)), atol=1e-3)


@pytest.mark.slow
def test_the_strengths_of_a_path_of_celer_are_those_of_the_sum() -> None:
    celer = pytest.importorskip("celer")
    signs = np.where(y == 1, 1.0, -1.0)
    _, coefs, *_ = celer.celer_path(np.asfortranarray(X), signs, "logreg", alphas=[6.0, 3.0])
    model = proxmargin.SparseLogisticRegression(l1_ratio=1.0, fit_intercept=False)
    path = proxmargin.margin_path(model, X, y, alphas=np.array([6.0, 3.0]) / len(y))
    np.testing.assert_allclose(coefs.T, path.coefs[:, 0], atol=1e-3)


S = 0.03  # the l1 strength s of the page
RIDGE = 0.02  # its ridge r
SHARE = 0.7  # its share a of the l1 norm
STATED = {  # what the packages document, as functions of margins u and coefficients
    "hhsvm": lambda u: cp.huber(cp.pos(1 - u), 2.0) / 4,
    "sqsvm": lambda u: cp.square(cp.pos(1 - u)),
    "logit": lambda u: cp.logistic(-u),
    "sparseSVM": lambda u: cp.huber(cp.pos(1 - u), 0.1) / 0.2,
    "type = 0": lambda u: cp.logistic(-u),
    "type = 2": lambda u: cp.square(cp.pos(1 - u)),
    "type = 5": lambda u: cp.square(cp.pos(1 - u)),
}


def distance_weighted(u: cp.Expression) -> tuple[cp.Expression, list[Any]]:
    """``V(u) = 1 - u`` up to 1/2, ``1 / (4 u)`` beyond: the least of 1/(4 v) + v - u over v >= u.

    The first part is ``min_v 1 / (4 v) + (v - u)``, which is attained at v = 1/2.
    """
    v = cp.Variable(u.shape, pos=True)
    return cp.inv_pos(v) / 4 + v - u, [v >= u]


@pytest.mark.parametrize(
    ("package", "there", "here"), cells("other-r.md", "package"), ids=lambda cell: cell.strip("`")
)
def test_a_row_of_another_package_minimises_what_that_states(
    package: str, there: str, here: str
) -> None:
    space = names(s=S, r=RIDGE, a=SHARE)
    model = evaluated(code(here), space)
    coef, intercept, constraints = cp.Variable(6), cp.Variable(), []
    signs = np.where(y == 1, 1.0, -1.0)
    margins = cp.multiply(signs, X @ coef + intercept)
    n = len(y)
    if package == "kerndwd":
        losses, constraints = distance_weighted(margins)
        objective = cp.sum(losses) / n + S * cp.sum_squares(coef)
    elif package == "LiblineaR":
        (kind,) = re.findall(r"type = \d", there)
        penalised = cp.sum_squares(coef) / 2 if kind != "type = 5" else cp.norm1(coef)
        if "bias = 0" in there:
            constraints = [intercept == 0]
        else:
            penalised += cp.square(intercept) / 2
        objective = 0.5 * cp.sum(STATED[kind](margins)) + penalised
    else:
        name = package if package == "sparseSVM" else re.findall(r'method = "(\w+)"', there)[0]
        l1, l2 = (S, RIDGE) if package == "gcdnet" else (S * SHARE, S * (1 - SHARE))
        penalty = l1 * cp.norm1(coef) + l2 / 2 * cp.sum_squares(coef)
        objective = cp.sum(STATED[name](margins)) / n + penalty
    cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(
        X @ coef.value + intercept.value, scores_of(model), rtol=1e-3, atol=2e-3
    )


@pytest.mark.parametrize("row", cells("other-r.md", "bound of stabs without an assumption"))
def test_the_bounds_are_those_of_stabs(row: list[str]) -> None:
    p, cutoff, q = (float(each) for each in re.findall(r"= ([\d.]+)", row[0]))
    assert q**2 / ((2 * cutoff - 1) * p) == pytest.approx(float(row[1]))
    rng = np.random.default_rng(0)
    data, labels = rng.standard_normal((60, int(p))), np.arange(60) % 2
    lasso = proxmargin.SparseLogisticRegression(l1_ratio=1.0, standardize=True)
    stable = proxmargin.StabilitySelection(
        lasso, threshold=cutoff, q=int(q), assumption="none", n_pairs=1, random_state=0
    ).fit(data, labels)
    assert stable.pfer_ == pytest.approx(float(row[1]))
