"""The classifiers that choose their own strength, one for each of the plain ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from re import split
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.data.inputs.kinds import KernelChoice, Labels, MultiClass, OneVsRest, Width
from proxmargin.models.classifiers.elastic_net import (
    ElasticNetSVC,
    HuberizedSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
)
from proxmargin.models.classifiers.multiclass import JointLoss, MulticlassSVC, Norm
from proxmargin.models.classifiers.regularized import SVC, LogisticRegression
from proxmargin.models.fitting.coefficients import SelectsFeatures
from proxmargin.models.fitting.parameters import FeatureParameters, KernelParameters
from proxmargin.models.selection.base import CrossValidated
from proxmargin.runtime.types import Array

Class = TypeVar("Class", bound=type[CrossValidated])

# parameters and attributes that some of the classes lack, and the parameter that brings them
_NEEDED = {name: name for name in ("alphas", "Cs", "l1_ratios", "relaxed")}
_NEEDED |= {"l1_ratio_": "l1_ratios", "gamma_": "relaxed"}


def documented(cls: Class) -> Class:
    """Add parameters and attributes of ``parameters.txt``, before the examples if there are any."""
    own, taken = {*cls._replaced_parameters, "random_state"}, cls._get_param_names()
    shared = ", ".join(each for each in cls.plain._get_param_names() if each not in own)
    told = (Path(__file__).parent / "parameters.txt").read_text("utf-8")
    told = told.format(name=cls.strength.name, plain=cls.plain.__name__, shared=shared)
    entries = [(each.split(" :")[0].strip(), each) for each in split(r"\n(?=    \S)", told)]
    text = "\n".join(each for name, each in entries if _NEEDED.get(name) in (None, *taken))
    summary, mark, examples = (cls.__doc__ or "").partition("\n    Examples\n")
    cls.__doc__ = summary.rstrip() + "\n" + text + (mark + examples if mark else "    ")
    return cls


class _ChosenAlpha:
    alpha_: float
    alphas_: Array


@dataclass(init=False, eq=False, repr=False)
class _Alphas(_ChosenAlpha):
    alphas: int | ArrayLike = 100
    l1_ratios: ArrayLike = (1.0,)


class _ChosenC:
    C_: float
    Cs_: Array


@dataclass(init=False, eq=False, repr=False)
class _Cs(_ChosenC):
    Cs: int | ArrayLike = 20


@dataclass(init=False, eq=False, repr=False)
class _CsOfNets(_Cs):
    l1_ratios: ArrayLike = (1.0,)


class _SparseCrossValidated(SelectsFeatures, CrossValidated):
    """Base of those whose plain classifier selects features."""

    l1_ratios: ArrayLike

    @property
    def norm_share(self) -> float:
        """That of the chosen classifier; before a fit the least that can be chosen."""
        chosen = getattr(self, "best_estimator_", None)
        return float(np.min(self.l1_ratios) if chosen is None else chosen.norm_share)


@dataclass(eq=False, repr=False)
class _NetCrossValidated(_SparseCrossValidated, FeatureParameters, _Alphas):
    """Base of those whose plain classifier has an elastic net."""

    relaxed: bool | Sequence[float] = False


@dataclass(eq=False, repr=False)
class _KernelCrossValidated(CrossValidated, KernelParameters, _Cs):
    """Base of those whose plain classifier takes a kernel."""

    _: KW_ONLY
    kernel: KernelChoice = "linear"
    gamma: Width = "scale"
    degree: int = 3
    coef0: float = 0.0
    multi_class: OneVsRest = "ovr"


@documented
@dataclass(eq=False, repr=False)
class HuberizedSVCCV(_NetCrossValidated):
    """`HuberizedSVC` with ``alpha`` and ``l1_ratio`` chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import HuberizedSVCCV
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = HuberizedSVCCV(alphas=10, l1_ratios=(0.5, 1.0), standardize=True).fit(X, y)
    >>> model.cv_scores_.shape, model.path_.n_nonzero.size
    ((2, 10, 5), 10)
    """

    plain = HuberizedSVC

    _: KW_ONLY
    delta: float = 1.0
    intercept_ridge: float = 0.0
    multi_class: MultiClass = "joint"


@documented
@dataclass(eq=False, repr=False)
class ElasticNetSVCCV(_NetCrossValidated):
    """`ElasticNetSVC` with ``alpha`` and ``l1_ratio`` chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import ElasticNetSVCCV
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = ElasticNetSVCCV(alphas=[0.1, 0.01, 0.001, 0.0001], cv=3, standardize=True)
    >>> model.fit(X[:200], y[:200]).alpha_, model.cv_scores_.shape
    (0.001, (1, 4, 3))
    """

    plain = ElasticNetSVC

    _: KW_ONLY
    multi_class: OneVsRest = "ovr"


@documented
@dataclass(eq=False, repr=False)
class SquaredHingeSVCCV(_NetCrossValidated):
    """`SquaredHingeSVC` with ``alpha`` and ``l1_ratio`` chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import SquaredHingeSVCCV
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = SquaredHingeSVCCV(alphas=8, cv=3, selection="1se", standardize=True).fit(X, y)
    >>> model.cv_scores_.shape, model.certificate_.converged
    ((1, 8, 3), True)
    """

    plain = SquaredHingeSVC

    _: KW_ONLY
    multi_class: OneVsRest = "ovr"


@documented
@dataclass(eq=False, repr=False)
class SparseLogisticRegressionCV(_NetCrossValidated):
    """`SparseLogisticRegression` with ``alpha`` and ``l1_ratio`` chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import SparseLogisticRegressionCV
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = SparseLogisticRegressionCV(alphas=10, cv=5, standardize=True).fit(X, y)
    >>> simpler = model.at("1se")
    >>> simpler.alpha > model.alpha_
    True
    >>> bool(simpler.get_support().sum() < model.get_support().sum())
    True
    """

    plain = SparseLogisticRegression

    _: KW_ONLY
    multi_class: MultiClass = "joint"


@documented
@dataclass(eq=False, repr=False)
class MulticlassSVCCV(_SparseCrossValidated, _CsOfNets):
    """`MulticlassSVC` with ``C`` (of an elastic net also ``l1_ratio``) chosen by cross-validation.

    With two classes the score of a sample is the difference of the scores of the classes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import MulticlassSVCCV
    >>> X, y = shuffle(*load_wine(return_X_y=True), random_state=0)
    >>> model = MulticlassSVCCV(Cs=[0.02, 0.1, 0.5, 3], cv=3, selection="1se", standardize=True)
    >>> model.fit(X, y).cv_scores_.shape, model.coef_.shape
    ((1, 4, 3), (3, 13))
    """

    plain = MulticlassSVC

    _: KW_ONLY
    penalty: Norm = "l1"
    groups: Labels | Mapping[Any, Any] | None = None
    loss: JointLoss = "hinge"
    margins: ArrayLike = 1.0


@documented
class SVCCV(_KernelCrossValidated):
    """`SVC` with ``C`` chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import SVCCV
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = SVCCV(Cs=[0.001, 0.01, 0.1, 1.0], cv=3, standardize=True).fit(X, y)
    >>> model.C_, model.path_.Cs.tolist()
    (0.1, [0.001, 0.01, 0.1, 1.0])
    """

    plain = SVC


@documented
class LogisticRegressionCV(_KernelCrossValidated):
    """`LogisticRegression` with ``C`` chosen by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import LogisticRegressionCV
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = LogisticRegressionCV(Cs=[0.01, 0.1, 1.0, 10.0], cv=3, standardize=True).fit(X, y)
    >>> model.C_, model.predict_proba(X).shape
    (1.0, (569, 2))
    """

    plain = LogisticRegression
