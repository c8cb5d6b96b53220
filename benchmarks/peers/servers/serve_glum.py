"""glum on the data in a folder; see serving.py."""

from __future__ import annotations

import sys
from pathlib import Path

from glum import GeneralizedLinearRegressor, GeneralizedLinearRegressorCV
from serving import Server, serve
from sklearn.model_selection import PredefinedSplit

ROUNDS = 10**6  # of Newton's method a strength; never binds

server = Server(Path(sys.argv[1]), lambda design: design)


def settings(l1_ratio: float, tol: float, intercept: int) -> dict[str, object]:
    return {
        "family": "binomial",
        "l1_ratio": l1_ratio,
        "gradient_tol": tol,
        "fit_intercept": bool(intercept),
        "alphas": server.vector("alphas"),
        "max_iter": ROUNDS,
        "max_inner_iter": ROUNDS,
    }


def path(alphas: int, **given) -> None:
    labels = server.vector("labels")
    model = GeneralizedLinearRegressor(alpha_search=True, **settings(**given))
    server.clocked(lambda: model.fit(server.design, labels))
    server.emit(model.coef_path_, model.intercept_path_)


def cv(alphas: int, folds: int, **given) -> None:
    labels, fold = server.vector("labels"), server.vector("folds")
    model = GeneralizedLinearRegressorCV(cv=PredefinedSplit(fold), **settings(**given))
    server.clocked(lambda: model.fit(server.design, labels))
    shape = (folds, alphas, -1)
    server.emit(
        [*model.coef_path_.reshape(shape), model._refit_coef_path],
        [*model.intercept_path_.reshape(folds, alphas), model._refit_intercept_path],
    )


serve(server, {"path": path, "cv": cv})
