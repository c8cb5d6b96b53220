"""The classifiers that choose their own strength, one for each of the plain ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
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

_OF_ALPHA = """alphas : int or (n_alphas,), default 100
        The strengths, or their number: the default grid of `proxmargin.margin_path` for all rows
        then. All folds use the same grid.
    """
_OF_C = """Cs : int or (n_Cs,), default 20
        The strengths, or their number: the default grid of `proxmargin.margin_path` for all rows
        then (with a nonlinear kernel, from 0.01 to 1000). All folds use the same grid.
    """
_RATIOS = """l1_ratios : sequence of float in [0, 1], default (1.0,)
    """
_RELAXED = """relaxed : bool or sequence of float in [0, 1], default False
        Mix the coefficients with those of a fit of the same features without a penalty,
        ``gamma * penalised + (1 - gamma) * unpenalised``, and choose gamma, too: True for 1, 0.75,
        0.5, 0.25 and 0. Smooth losses, two classes or one class against the rest. Where the
        features separate the classes, or are linearly dependent, only gamma=1 is tried.
    """
_GAMMA = """gamma_ : float
        With ``relaxed``; `cv_scores_` has a row for each pair of l1_ratio and gamma then.
        ``certificate_`` is that of the mixed coefficients in the penalised problem: their gap is
        not small.
    """
_PARAMETERS = """
    Parameters
    ----------
    {strengths}{ratios}eps : float in (0, 1], default 1e-3
        Ratio of the weakest to the strongest penalty of a default grid, as in
        `proxmargin.margin_path`.
    cv : int, splitter or iterable of splits, default 5
        A number of stratified folds, which are shuffled, unlike scikit-learn's: rows of files are
        ordered. A splitter does as it says; ``TimeSeriesSplit`` is for rows in the order of time.
    scoring : str or callable, optional
        By default the mean loss of the model over the held-out rows, weighted as in the fit to
        all rows (by ``class_weight`` too, unlike all others), negated; `score` is the accuracy
        then, and else the value of the scoring.
        'neg_log_loss' and 'deviance' (its double) of logistic models are computed from the scores;
        any other scorer of scikit-learn is called for each model.
    selection : {{'best', '1se'}}
        The highest mean score, or the strongest penalty within one standard error of it.
    n_jobs : int, optional
        Threads, over the folds; -1 for all cores. Within ``joblib.parallel_config("dask")`` the
        folds are tasks of the cluster. The result does not depend on it.
    keep_scores : bool, default False
        Keep the scores of held-out rows in ``oof_scores_``.
    refit : bool, default True
        Fit all rows with the chosen parameters; without it the model cannot predict.
    random_state : int, numpy.random.Generator, RandomState or None, default 0
        Shuffles a number of folds: the same ones each time.
    {relaxed}{shared}
        As in `{plain}`. Callbacks see the fits to all rows. ``warm_start`` has no effect: each
        fit of a path starts from the previous one.

    Attributes
    ----------
    {name}_ : float
    {ratio}{gamma}{name}s_ : (n_l1_ratios, n_{name}s)
        From the strongest penalty.
    cv_scores_ : (n_l1_ratios, n_{name}s, n_folds)
    cv_results_ : pandas.DataFrame
        A row for each l1_ratio and {name}.
    best_index_ : int
        The chosen row of ``cv_results_``.
    path_ : Path
        Of all rows, for the chosen l1_ratio; of linear models.
    oof_scores_ : (n_l1_ratios, n_{name}s, n_samples) if binary, else with n_classes as well
        With ``keep_scores``: scores of each row by the models of the fold that held it out.
    best_estimator_ : {plain}
        Of all rows. This classifier has all its attributes (``coef_``, ``intercept_``,
        ``certificate_``, ``n_features_in_``, ``feature_names_in_`` and others), and
        `proxmargin.save_model` stores it.
"""


def documented(cls: Class) -> Class:
    """Add parameters and attributes, before the examples if there are any."""
    name = cls.strength.name
    mixes = "l1_ratio" in cls.plain._get_param_names()
    known = cls.plain._get_param_names()
    own = {*cls._replaced_parameters, "random_state"}
    shared = [each for each in known if each not in own]
    text = _PARAMETERS.format(
        shared=", ".join(shared),
        strengths=_OF_ALPHA if name == "alpha" else _OF_C,
        ratios=_RATIOS if mixes else "",
        plain=cls.plain.__name__,
        name=name,
        ratio="l1_ratio_ : float\n    " if mixes else "",
        relaxed=_RELAXED if "relaxed" in cls._get_param_names() else "",
        gamma=_GAMMA if "relaxed" in cls._get_param_names() else "",
    )
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
