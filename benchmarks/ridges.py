"""`python -m benchmarks ridges`: strengths and folds of models with a ridge, p > n."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DataSet, load
from benchmarks.objective import (
    Floats,
    Hinge,
    Logistic,
    MarginLoss,
    Problem,
    SquaredHinge,
    relative_gap,
)
from benchmarks.peers.base import UNLIMITED
from benchmarks.report import RESULTS, seconds, table, write_section

DATA = ("colon", "leukemia", "synthetic:100,5000,50,0.5")
MODELS: dict[str, MarginLoss] = {
    "LogisticRegression": Logistic(),
    "L2SVC": SquaredHinge(),
    "SVC": Hinge(),
}
TOL = 1e-6
LADDER = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)  # of scikit-learn's tolerances
LONG = 600.0  # seconds: single fits with a limit of time are what paths were before
REPEATS = 3
KINKS = (1e-9, 1e-7, 1e-5, 1e-3)  # how far from one a margin of a hinge counts as at its kink


@dataclass(frozen=True)
class Fitted:
    """The models of all strengths and folds: (folds, strengths, p) and (folds, strengths).

    ``duals`` are dual points, one a model, fold by fold, where a solver tells them.
    """

    coefs: Floats
    intercepts: Floats
    duals: Sequence[Sequence[Floats]] | None = None


Fit = Callable[["Search", float], Fitted]


@dataclass(frozen=True)
class Search:
    """Strengths by folds: what is fitted, and to which rows."""

    model: str
    data: DataSet
    n_folds: int
    n_strengths: int

    @cached_property
    def splits(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        from sklearn.model_selection import StratifiedKFold

        folds = StratifiedKFold(self.n_folds, shuffle=True, random_state=0)
        return list(folds.split(self.data.design, self.data.labels))

    @cached_property
    def Cs(self) -> Floats:
        """The library's own, of all rows."""
        import proxmargin

        path = proxmargin.margin_path(
            proxmargin.LogisticRegression(), *self.rows(None), n_alphas=self.n_strengths
        )
        return path.strengths

    def rows(self, index: NDArray[np.intp] | None) -> tuple[Any, Floats]:
        if index is None:
            return self.data.design, self.data.labels
        return self.data.design[index], self.data.labels[index]

    def worst_gap(self, found: Fitted) -> float:
        """The largest certified relative gap over strengths and folds."""
        return max(self._gaps(found))

    def _gaps(self, found: Fitted) -> Iterator[float]:
        for k, (train, _) in enumerate(self.splits):
            X, y = self.rows(train)
            whole = Problem(X, y, MODELS[self.model], l1=0.0, l2=1.0)
            for j, C in enumerate(self.Cs):
                coef, b = found.coefs[k, j], found.intercepts[k, j]
                stated = replace(whole, l2=1.0 / (C * y.size))
                duals = list(_at_kinks(stated, coef, b)) if self.model == "SVC" else []
                duals += [] if found.duals is None else [found.duals[k][j]]
                yield relative_gap(stated, coef, float(b), duals)


def _at_kinks(stated: Problem, coef: Floats, intercept: float) -> Iterator[Floats]:
    """Dual points of a hinge: where margins are at its kink, by least squares."""
    X, y = stated.design, stated.labels
    t = y * (X @ coef + intercept)
    columns = np.vstack([(y[:, None] * X).T, y]) / y.size
    wanted = np.append(stated.l2 * coef, 0.0)
    for reach in KINKS:
        inside = np.abs(t - 1.0) <= reach
        beta = np.where((t < 1.0) & ~inside, 1.0, 0.0)
        rest = wanted - columns @ beta
        beta[inside] = np.linalg.lstsq(columns[:, inside], rest, rcond=None)[0]
        yield beta


# ---- those who fit ------------------------------------------------------------------------------


def _paths(search: Search, **settings: Any) -> Fitted:
    """A path a fold, and the scores of the rows that it holds out."""
    import proxmargin

    estimator = getattr(proxmargin, search.model)(tol=TOL, **settings)
    found = []
    for train, test in search.splits:
        path = proxmargin.margin_path(estimator, *search.rows(train), Cs=search.Cs)
        path.scores(search.data.design[test])
        found.append(path)
    coefs = np.stack([path.coefs[:, 0] for path in found])
    return Fitted(coefs, np.stack([path.intercepts[:, 0] for path in found]))


def _single(search: Search, tol: float) -> Fitted:
    return _paths(search, time_limit=LONG)


def _together(search: Search, tol: float) -> Fitted:
    return _paths(search)


def _scikit_learn(search: Search, tol: float) -> Fitted:
    """`LogisticRegressionCV` with L-BFGS, or `GridSearchCV` over the linear SVC of LIBSVM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (_logistic if search.model == "LogisticRegression" else _libsvm)(search, tol)


def _logistic(search: Search, tol: float) -> Fitted:
    from sklearn.linear_model import LogisticRegressionCV

    model = LogisticRegressionCV(
        Cs=search.Cs,
        cv=search.splits,
        tol=tol,
        max_iter=UNLIMITED,
        refit=False,
        scoring="accuracy",
        l1_ratios=np.zeros(1),
        use_legacy_attributes=False,
    ).fit(search.data.design, search.data.labels)
    flat = model.coefs_paths_.reshape(search.n_folds, search.Cs.size, -1)
    return Fitted(flat[:, :, :-1], flat[:, :, -1])


@dataclass
class _Record:
    """Accuracy, remembering the models."""

    models: list[tuple[Floats, float, Floats]] = field(default_factory=list)

    def __call__(self, model: Any, X: Any, y: Floats) -> float:
        beta = np.zeros(model.shape_fit_[0])
        beta[model.support_] = np.abs(model.dual_coef_.ravel()) / model.C
        self.models.append((model.coef_.ravel(), float(model.intercept_[0]), beta))
        return float(model.score(X, y))


def _libsvm(search: Search, tol: float) -> Fitted:
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    record = _Record()
    grid = {"C": search.Cs}
    model = SVC(kernel="linear", tol=tol)
    GridSearchCV(model, grid, cv=search.splits, scoring=record, refit=False).fit(
        search.data.design, search.data.labels
    )
    # candidates are the outer loop
    folds = [record.models[k :: search.n_folds] for k in range(search.n_folds)]
    coefs, intercepts = (np.array([[one[i] for one in fold] for fold in folds]) for i in (0, 1))
    return Fitted(coefs, intercepts, [[one[2] for one in fold] for fold in folds])


# ---- measuring ----------------------------------------------------------------------------------


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--strengths", type=int, default=20)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    rows: list[Sequence[str]] = []
    for name in arguments.data:
        for model in arguments.models:
            search = Search(model, load(name), arguments.folds, arguments.strengths)
            rows.append(_row(search))
            print(*rows[-1], sep=" | ", flush=True)
            _write(rows, arguments)
    return 0


def _row(search: Search) -> Sequence[str]:
    single, together = (_measured(fit, search, TOL) for fit in (_single, _together))
    row = [search.model, search.data.name, seconds(single[0]), seconds(together[0])]
    row += [f"{together[1]:.0e}", f"{single[0] / together[0]:.1f}"]
    if search.model == "L2SVC":  # LIBLINEAR shrinks the intercept: another problem
        return [*row, "", "", ""]
    for tol in LADDER:
        spent, gap = _measured(_scikit_learn, search, tol)
        if gap <= TOL:
            break
    return [*row, seconds(spent), f"{gap:.0e}", f"{spent / together[0]:.1f}"]


def _measured(fit: Fit, search: Search, tol: float) -> tuple[float, float]:
    """CPU seconds, the least of some, and the worst gap; what is compiled is loaded before."""
    found, spent = fit(search, tol), []
    for _ in range(REPEATS):
        start = time.process_time()
        fit(search, tol)
        spent.append(time.process_time() - start)
        if sum(spent) > LONG / 100:
            break
    return min(spent), search.worst_gap(found)


def _write(rows: Sequence[Sequence[str]], arguments: argparse.Namespace) -> None:
    text = f"""CPU seconds for {arguments.strengths} strengths on the training parts of
{arguments.folds} folds, and the scores of the rest. Single fits start from the solution before;
together, `margin_path` works in inner products of the samples. Gaps are the largest of all models,
certified on the rows that they were fitted to. scikit-learn: `LogisticRegressionCV` with L-BFGS and
`GridSearchCV` over LIBSVM's linear SVC, at the loosest tolerance whose models are all certified to
{TOL:g}, or else at {LADDER[-1]:g}; LIBLINEAR shrinks the intercept of its squared hinge, which is
another model. Ratios are to the paths together."""
    head = ["model", "data", "single fits", "together", "gap", "ratio"]
    head += ["scikit-learn", "gap", "ratio"]
    title = "Strengths and folds of models with a ridge, more features than samples"
    write_section("ridges", title, text + "\n\n" + table(head, rows), arguments.results)
