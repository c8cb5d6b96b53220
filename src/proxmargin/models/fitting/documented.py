"""Parts of docstrings that several estimators share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)  # of estimator, which keeps its type

_SOLVING = """class_weight : None, 'balanced' or dict
        Multiplies the sample weights. A dict names labels of y (others only where each of y has its
        weight: the data may be a part that lacks a class), and the rest count once.
    solver : str or Solver, default 'auto'
        'auto', {solvers}, or a solver object.
    solver_options : dict, optional
        Settings of a solver asked for by name.
    stopping : {{'gap', 'relative-change', 'iterate-change', 'primal-residual', 'step-residual', \
'fixed-point', 'point-residual'}}
        Stop when the relative duality gap is at most ``tol``, or by a rule of a paper at ``tol``
        (`proxmargin.solvers.loop.solver`), if the solver can. The certificate is computed either
        way.
    tol : float, default 1e-6
        Relative duality gap.
    max_iter : int, optional
        Iterations of the solver; by default a limit of its own.
    time_limit : float, optional
        Seconds for the whole fit, shared by the classes of one-vs-rest. The best model at that time
        is certified; its bound is weak if there is no time for one product with a kernel matrix.
        A class whose turn comes after the limit takes one cheap step; half a second later it keeps
        zero coefficients, with their gap, and 'none' as the solver of its certificate.
        Time in which Numba kernels are compiled or loaded does not count. Without a limit, a tiny
        problem (``n_samples * (n_samples + n_features) <= 50,000``) whose solver is 'auto' and has
        no ``max_iter`` ends after 1.8e9 multiply-adds, some two seconds; each strength of a path
        does. No clock has a say in the result of a fit without a limit.
    warm_start : bool, default False
        Start from the previous solution{warm}.
    callbacks : sequence of callables
        Called with a `proxmargin.solvers.loop.report.Report` after each certificate. One that
        returns False ends the fit; one that raises does so too, and its error is raised once the
        best model so far is published.
    verbose : int, default 0
        1 shows progress on standard error for fits of more than two seconds.
    random_state : ignored
        The fit is deterministic."""

_JOBS = """
    n_jobs : int, optional
        Threads for the problems of one-vs-rest, with one thread of BLAS each; -1 for all cores. The
        result has the same bits for any number. None is one thread (unless in a context of
        `joblib.parallel_config`), with the threads that BLAS has. With callbacks, ``verbose``, a
        checkpoint or a nonlinear kernel, whose values the classes share, the classes are solved one
        after the other whatever the number. Data that are read in passes (a data set on disk, Dask
        collections, device arrays) are read once for all classes, whatever the number, unless
        there are callbacks."""

_FEATURES = """penalty_factor : (n_features,) array >= 0, or dict, optional
        Multiplies l1 and l2 of each feature; 0 for a feature that is never penalised. Taken as it
        is: glmnet divides its factors by their mean. A dict (1 for features that it leaves out) or
        a pandas Series has them by the names of the features, or their numbers if they have none;
        a Series numbered from 0 is in the order of the columns.
    bounds : pair (lower, upper), or dict of such pairs, optional
        Each a number, an array with one number a feature, a dict or Series as above (without
        bounds for features that it leaves out), or None, with ``lower <= 0 <= upper``:
        ``lower <= coef_ <= upper``, in the units of the data; ``(0, None)`` for coefficients that
        are not negative, ``{{"age": (0, None)}}`` for that of one feature.
    """

JOINT_PARAMETERS = (
    """fit_intercept : bool, default True
        The intercept is not penalised.
    standardize : bool, default False
        Penalise the coefficients of features centred (if an intercept is fitted) and scaled to
        unit variance; sparse data are not made dense, and `coef_` is in the units of the data.
    """
    + _SOLVING
)

ONE_AGAINST_THE_REST = """multi_class : {{'ovr'}}
        One problem a class against the rest."""

_SPARSE_PARAMETERS = _FEATURES + JOINT_PARAMETERS + _JOBS

_STRENGTHS = """alpha : float >= 0, default 0.01
        Strength of the penalty. `proxmargin.alpha_max` is the least one with all-zero coefficients.
        With 0 the certificate proves the optimum of separable data{unpenalised}.
        Of others it proves none.
    l1_ratio : float in [0, 1], default 0.5
        ``l1 = alpha * l1_ratio``, ``l2 = alpha * (1 - l1_ratio)``."""

# how far a certificate without a penalty reaches, for smooth losses
FEW_FEATURES = """, and of at most 256 independent
        features, fewer than the samples"""
OF_ONE_COLUMN = f"{FEW_FEATURES}, in models of one column of scores"

_KAPPA = """kappa : float >= 0 or str, default '0.5max'
        Size of the ellipsoids, in standard deviations. ``'0.5max'`` is half of
        `proxmargin.kappa_max`, at which the margin vanishes (an error names it for numbers beyond);
        if that is infinite or beyond 100, a share f means ``f / (1 - f)``. With
        ``kernel='rbf'`` it is infinite unless equal samples have different labels; with another
        nonlinear kernel unless this has at most 500 dimensions on the data, clearly above rounding.
        A share is then no more than leaves a margin of a hundredth of the distance of the class
        means. Where ``time_limit`` ends these computations, the share is one of a lower bound: a
        warning and the certificate tell the bounds.
    bias : {'training_error', 'minimax'}
        The objective does not depend on the intercept: take the one with the least weighted
        training error, or the one at which both classes have the same worst-case margin."""

_KERNEL_PARAMETERS = (
    """kernel : {{'linear', 'rbf', 'poly', 'sigmoid', 'precomputed'}} or callable, default 'linear'
        A callable takes two data sets and returns the matrix of their kernel; samples may then be
        any objects, in a list or an array (``standardize`` needs numbers). Definitions and
        ``gamma`` as in scikit-learn. A kernel must be positive semidefinite on the data, otherwise
        `fit` raises an error: 'sigmoid' mostly is not, and 'poly' with ``coef0 < 0``, callables and
        precomputed matrices may not be.
    gamma : {{'scale', 'auto'}} or float > 0
        Inverse squared width of 'rbf'; factor of the inner product in 'poly' and 'sigmoid'.
    degree : int, default 3
        Exponent of 'poly'.
    coef0 : float, default 0.0
        Constant added to the inner product in 'poly' and 'sigmoid'.
    """
    + ONE_AGAINST_THE_REST
    + """
    fit_intercept : bool, default True
        The intercept is not penalised.
    standardize : bool, default False
        Centre features (for a linear kernel, if an intercept is fitted) and scale them to unit
        variance (sparse data are not made dense); predictions take data in the original units.
    cache_size : float, default 1000
        Megabytes of a nonlinear kernel's matrix that are cached; other rows are recomputed when
        needed.
    rank : int, optional
        Largest rank of the low-rank factor that approximates a nonlinear kernel in the solver. By
        default 1000, increased until the certificate, which is for the kernel itself, meets
        ``tol``; the SVM and the nu-SVM with an intercept use the kernel itself unless a rank is
        given. The approximation error is included in the certificate.
    """
    + _SOLVING
    + _JOBS
)

SPARSE_ATTRIBUTES = """Attributes
    ----------
    coef_ : (1, n_features) if binary, else (n_classes, n_features)
    intercept_ : (1,) or (n_classes,)
    classes_ : (n_classes,)
        A positive score means ``classes_[1]`` if binary; else the largest score wins.
    certificate_ : Certificate or CertificateList
        Duality gap: a proven bound on the suboptimality of the fit.
    feature_scale_ : (n_features,), with ``standardize=True``
        Standard deviations of the features, by which `coefficients` compares them.
    largest_offset_ : float, where the model was fitted with an offset
        Its largest absolute entry; predictions without an offset warn of it.
    n_iter_, n_features_in_ : int
    feature_names_in_ : (n_features,), for data frames
    history_ : History, when one is among the callbacks"""

_KERNEL_ATTRIBUTES = (
    SPARSE_ATTRIBUTES.replace(
        "    coef_ : (1, n_features) if binary, else (n_classes, n_features)\n",
        "    coef_ : (1, n_features) if binary, else (n_classes, n_features)\n"
        "        Of a linear kernel.\n",
    )
    + """
    dual_coef_ : (1, n_support) if binary, else (n_classes, n_support)
        Weights of the support vectors: the model is their weighted sum, of samples in the units of
        the kernel (``standardize``). For a linear kernel they are those of the certified dual
        point, while ``coef_`` is the certified point itself. Both agree at the optimum only: with
        features as given, the squared distance ``|coef_ - dual_coef_ @ X[support_]|^2`` of SVC,
        L2SVC and LogisticRegression is at most ``2 * certificate_.gap``.
    support_ : (n_support,)
        Their indices among the training samples.
    support_vectors_ : (n_support, n_features), for nonlinear kernels
        In the units of the kernel; sparse ones are scaled, and centred only in features with a
        mean of more than two scales.
    gamma_ : float or None, for nonlinear kernels"""
)


def documented(
    solvers: str,
    parameters: str = _SPARSE_PARAMETERS,
    attributes: str = SPARSE_ATTRIBUTES,
    *,
    unpenalised: str = "",
    warm: str = "",
) -> Callable[[Kind], Kind]:
    """Fill the marks in a class docstring, and say where models without probabilities get them.

    ``unpenalised``: what is proved without a penalty, besides the optimum of separable data.
    """
    parts: Mapping[str, str] = {
        "<strengths>": _STRENGTHS.format(unpenalised=unpenalised),
        "<kappa>": _KAPPA,
        "<shared>": parameters.format(solvers=solvers, warm=warm),
        "<attributes>": attributes,
    }

    def fill(cls: Kind) -> Kind:
        text = cls.__doc__ or ""
        for mark, part in parts.items():
            text = text.replace(mark, part)
        if not hasattr(cls, "predict_log_proba"):  # before the examples
            head, mark, examples = text.partition("\n    Examples\n")
            text = f"{head.rstrip()}\n\n{_ADVICE}{mark + examples if mark else '    '}"
        cls.__doc__ = text
        return cls

    return fill


def documented_kernels(solvers: str) -> Callable[[Kind], Kind]:
    """`documented` for models that take a kernel."""
    return documented(solvers, _KERNEL_PARAMETERS, _KERNEL_ATTRIBUTES, warm="; linear kernels only")


_ADVICE = """    See Also
    --------
    CalibratedMargin : Probabilities of the classes, from held-out scores of this classifier.
"""
