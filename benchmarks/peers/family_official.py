"""The official packages of LIBSVM and LIBLINEAR, ReHLine and Snap ML, on the models of the family.

The copies of the data into LIBSVM's and LIBLINEAR's nodes are outside the clock. LIBLINEAR's primal
solvers can leave the intercept free (-B 1 -R), its dual ones cannot; nor can ReHLine and Snap ML:
these are asked for the model with a penalised intercept, and judged on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.datasets import Design
from benchmarks.family import Case, OneVsRest, Tail, augmented
from benchmarks.objective import Floats, Hinge, Logistic, SquaredHinge
from benchmarks.peers.base import DECADES, Fitted, Stopwatch, row_major, threads
from benchmarks.peers.family import (
    CACHE_MB,
    MADE_FOR,
    LiblinearPeer,
    dual_of,
    is_augmented,
    is_plain,
)
from benchmarks.peers.liblinear_official import trained, trained_classes
from benchmarks.peers.rehline_peers import LOSSES as REHLINE_LOSSES
from benchmarks.peers.rehline_peers import SWEEPS as REHLINE_SWEEPS
from benchmarks.peers.snapml_peers import SEED
from benchmarks.peers.snapml_peers import SWEEPS as SNAP_SWEEPS

DUAL = {Hinge: 3, SquaredHinge: 1, Logistic: 7}  # numbers of its dual coordinate descents
FREE = {SquaredHinge: "-s 2 -B 1 -R", Logistic: "-s 0 -B 1 -R"}  # primal, trust-region Newton
SNAP_LOSSES: dict[type, str] = {Hinge: "hinge", SquaredHinge: "squared_hinge"}


@dataclass(frozen=True)
class OfficialLibsvmPeer:
    """C-SVM and nu-SVM with a linear kernel, a cache that holds what it can, and shrinking."""

    name: str = "LIBSVM official"
    ladder: tuple[float, ...] = DECADES[1:9]
    compiles: bool = False
    package: str = "libsvm"

    def solves(self, case: Case) -> bool:
        return is_plain(case.model, "hinge") or isinstance(case.model, Tail)

    def prepared(self, design: Design) -> Design:
        return csr_matrix(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        from libsvm.svm import svm_parameter, svm_problem
        from libsvm.svmutil import svm_train

        nu = isinstance(case.model, Tail)
        kind = f"-s 1 -n {case.model.nu!r}" if nu else f"-s 0 -c {case.model.C!r}"
        data = svm_problem(case.labels, case.design)
        settings = svm_parameter(f"{kind} -t 0 -e {setting!r} -m {CACHE_MB} -q")
        watch = Stopwatch()
        with watch.running():
            model = svm_train(data, settings)
        sign = 1.0 if model.get_labels()[0] > 0 else -1.0
        support = np.ctypeslib.as_array(model.sv_indices, (model.l,)) - 1
        weights = sign * np.ctypeslib.as_array(model.sv_coef[0], (model.l,))
        return Fitted(
            coef=np.asarray(case.design[support].T @ weights),
            intercept=-sign * float(model.rho[0]),
            dual=dual_of(case, support, weights),
            clocked=watch.times,
        )


@dataclass(frozen=True)
class OfficialLiblinearPeer:
    """The primal solvers with a free intercept."""

    name: str = "LIBLINEAR official"
    ladder: tuple[float, ...] = DECADES[1:11]
    compiles: bool = False
    package: str = "liblinear"

    def solves(self, case: Case) -> bool:
        return is_plain(case.model, "squared") or is_plain(case.model, "logistic")

    def prepared(self, design: Design) -> Design:
        return csr_matrix(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        kind = FREE[type(case.model.loss)]
        return trained(case.design, case.labels, f"{kind} -c {case.model.C!r} -e {setting!r}")


@dataclass(frozen=True)
class OfficialLiblinearDualPeer:
    """Dual coordinate descent; it stops after the 300 rounds that are built in.

    Several classes are a problem each, against the others.
    """

    name: str = "LIBLINEAR official, dual"
    ladder: tuple[float, ...] = DECADES[1:10]
    compiles: bool = False
    package: str = "liblinear"

    def solves(self, case: Case) -> bool:
        return any(is_augmented(_of_a_class(case.model), loss) for loss in MADE_FOR)

    def prepared(self, design: Design) -> Design:
        return csr_matrix(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        model = _of_a_class(case.model)
        train = trained_classes if isinstance(case.model, OneVsRest) else trained
        kind = f"-s {DUAL[type(model.loss)]} -B 1"
        return train(case.design, case.labels, f"{kind} -c {model.C!r} -e {setting!r}")


def _of_a_class(model: Any) -> Any:
    return model.each if isinstance(model, OneVsRest) else model


@dataclass(frozen=True)
class ReHLineRidgePeer:
    """Dual coordinate descent on data with a column of ones."""

    name: str = "ReHLine"
    ladder: tuple[float, ...] = DECADES[1:11]
    compiles: bool = False
    package: str = "rehline"

    def solves(self, case: Case) -> bool:
        return is_augmented(case.model, "hinge") or is_augmented(case.model, "squared")

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        from rehline import plqERM_Ridge

        loss = {"name": REHLINE_LOSSES[type(case.model.loss)]}
        model = plqERM_Ridge(loss, C=case.model.C, tol=setting, max_iter=REHLINE_SWEEPS)
        wide, watch = augmented(case.design), Stopwatch()
        with watch.running():
            model.fit(wide, case.labels)
        coef, count = model.coef_, int(model.n_iter_)
        return Fitted(coef[:-1], float(coef[-1]), float(count), count, clocked=watch.times)


@dataclass(frozen=True)
class SnapSvmPeer:
    """Snap ML's dual coordinate descent, in single precision."""

    name: str = "Snap ML"
    ladder: tuple[float, ...] = DECADES[1:9]
    compiles: bool = False
    package: str = "snapml"

    def solves(self, case: Case) -> bool:
        return is_augmented(case.model, "hinge") or is_augmented(case.model, "squared")

    def prepared(self, design: Design) -> Design:
        return row_major(design.astype(np.float32))

    def fit(self, case: Case, setting: float) -> Fitted:
        from snapml import SupportVectorMachine

        model = SupportVectorMachine(
            loss=SNAP_LOSSES[type(case.model.loss)],
            regularizer=1.0 / case.model.C,
            tol=setting,
            max_iter=SNAP_SWEEPS,
            fit_intercept=True,
            n_jobs=threads(),
            random_state=SEED,
        )
        model.fit(case.design, case.labels)
        coef: Floats = np.ravel(model.coef_).astype(np.float64)
        return Fitted(coef, float(np.ravel(model.intercept_)[0]))


FREE_PEERS = (OfficialLibsvmPeer(), OfficialLiblinearPeer())
AUGMENTED_PEERS = (OfficialLiblinearDualPeer(), ReHLineRidgePeer(), SnapSvmPeer())
# names of those whose model has a penalised intercept
PENALISED = frozenset({LiblinearPeer().name, *(peer.name for peer in AUGMENTED_PEERS)})
