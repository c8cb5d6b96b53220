"""adelie on the data in a folder; see serving.py.

Its own cross-validation takes neither folds nor strengths; `cv` is that loop, with the weights of
held-out rows zero as there, over folds and strengths that are given.
"""

from __future__ import annotations

import sys
from pathlib import Path

import adelie as ad
import numpy as np
from scipy.sparse import issparse
from serving import Server, serve


def prepared(design):
    """adelie's matrix over the same memory."""
    if issparse(design):
        return ad.matrix.sparse(design, method="naive", n_threads=1)
    return ad.matrix.dense(design, method="naive", n_threads=1)


server = Server(Path(sys.argv[1]), prepared)


def solved(model, alphas, l1_ratio: float, tol: float, intercept: int):
    """A path through all strengths: no early exit, one tolerance for both of its loops."""
    return ad.grpnet(
        server.design,
        model,
        lmda_path=alphas,
        alpha=l1_ratio,
        tol=tol,
        irls_tol=tol,
        adev_tol=1.0,
        ddev_tol=0.0,
        early_exit=False,
        intercept=bool(intercept),
        n_threads=1,
        progress_bar=False,
    )


def path(alphas: int, **settings) -> None:
    strengths, labels = server.vector("alphas"), server.vector("labels")
    state = server.clocked(
        lambda: solved(ad.glm.binomial(labels, dtype=np.float64), strengths, **settings)
    )
    complete(state, alphas)
    server.emit(state.betas.toarray(), state.intercepts)


def cv(alphas: int, folds: int, **settings) -> None:
    strengths, labels = server.vector("alphas"), server.vector("labels")
    fold = server.vector("folds")
    losses = np.empty((folds, alphas))

    def crossed():
        whole = ad.glm.binomial(labels, dtype=np.float64)
        states = []
        for k in range(folds):
            kept = (fold != k) / np.count_nonzero(fold != k)
            held = whole.reweight((fold == k) / np.count_nonzero(fold == k))
            state = solved(whole.reweight(kept), strengths, **settings)
            scores = ad.diagnostic.predict(server.design, state.betas, state.intercepts)
            losses[k] = [held.loss(each) for each in scores]
            states.append(state)
        states.append(solved(whole, strengths, **settings))
        return states

    states = server.clocked(crossed)
    for state in states:
        complete(state, alphas)
    server.emit([state.betas.toarray() for state in states], [s.intercepts for s in states])


def complete(state, alphas: int) -> None:
    if len(state.lmdas) != alphas:
        raise RuntimeError(f"the path ended after {len(state.lmdas)}")


serve(server, {"path": path, "cv": cv})
