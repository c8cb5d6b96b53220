"""A path: models of the same data for many strengths of the penalty.

The strongest penalty comes first, each solution the start of the next.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from proxmargin.certificates.certificate import Certificate, CertificateList
from proxmargin.estimators.base import MarginEstimator, certificate_of, unmet
from proxmargin.loop.outcome import Solution
from proxmargin.paths.descent import descended
from proxmargin.paths.grid import checked_alphas, default_grid, unfitted

__all__ = ["Path", "margin_path"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path:
    """Models of decreasing or any other strength, as `margin_path` found them.

    Attributes
    ----------
    alphas : (n_alphas,)
        In the order in which they were asked for; by default decreasing.
    coefs : (n_alphas, n_rows, n_features)
        ``coef_`` of every model, in the units of the data.
    intercepts : (n_alphas, n_rows)
    n_nonzero : (n_alphas,) integers
        Features with a nonzero coefficient for any class.
    certificates : list of Certificate or CertificateList
        What each model proves about its distance from the optimum.
    classes : (n_classes,)
    template : estimator
        With the parameters that all models share; `model` fills it in.
    """

    alphas: Array
    coefs: Array
    intercepts: Array
    n_nonzero: NDArray[np.intp]
    certificates: list[Certificate | CertificateList]
    classes: NDArray[Any]
    template: MarginEstimator = field(repr=False)

    def __len__(self) -> int:
        return self.alphas.size

    def model(self, index: int) -> MarginEstimator:
        """The fitted estimator for ``alphas[index]``."""
        model = copy(self.template)
        model.set_params(alpha=float(self.alphas[index]))
        model.coef_, model.intercept_ = self.coefs[index], self.intercepts[index]
        model.classes_ = self.classes
        model.certificate_ = self.certificates[index]
        model.n_iter_ = max(model.certificate_.n_iter, 1)
        return model


def margin_path(
    estimator: MarginEstimator,
    X: Any,
    y: Any,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-3,
    sample_weight: Any = None,
    offset: Any = None,
) -> Path:
    """Fit the model for many ``alpha``, from the largest down, each from the previous solution.

    The data are checked, standardised and turned into a problem once.

    Parameters
    ----------
    estimator : an estimator with ``alpha`` and ``l1_ratio``
        Is not changed. Its ``tol``, ``max_iter`` and ``time_limit`` hold for every single fit.
    X, y, sample_weight, offset
        As for ``estimator.fit``.
    alphas : (n_alphas,), optional
        In any order. By default ``n_alphas`` numbers in geometric progression from `alpha_max`
        down to ``eps`` times that. For ``l1_ratio=0`` (where `alpha_max` is infinite) the
        progression starts at the `alpha_max` of ``l1_ratio=0.001``; and at 1 where no feature
        is related to the labels.
    n_alphas : int
    eps : float in (0, 1]

    Returns
    -------
    Path

    Raises
    ------
    KeyboardInterrupt
        The fit was interrupted.

    Warns
    -----
    ConvergenceWarning
        Once for the whole path, with the worst gap, when a fit ended before its gap met ``tol``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC, margin_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = margin_path(HuberizedSVC(l1_ratio=0.9, standardize=True), X, y, n_alphas=5)
    >>> path.coefs.shape, int(path.n_nonzero[0])
    ((5, 1, 30), 0)
    """
    template = unfitted(estimator)
    assembly = template._assemble(X, y, sample_weight, offset)
    given = None if alphas is None else checked_alphas(alphas)
    grid = default_grid(template, assembly, n_alphas, eps) if given is None else given
    solved = descended(template, assembly, grid)
    _warn(template, solved)
    published = [template._published(assembly, solutions) for solutions in solved]
    coefs = np.stack([coef for coef, _ in published])
    return Path(
        alphas=grid,
        coefs=coefs,
        intercepts=np.stack([intercept for _, intercept in published]),
        n_nonzero=np.count_nonzero(coefs.any(axis=1), axis=1),
        certificates=[certificate_of(solutions) for solutions in solved],
        classes=assembly.targets.classes,
        template=template,
    )


def _warn(template: MarginEstimator, solved: Sequence[Sequence[Solution]]) -> None:
    short = [solutions for solutions in solved if unmet(solutions)]
    if short:
        worst = max(s.certificate.relative_gap for solutions in short for s in unmet(solutions))
        warnings.warn(
            f"{len(short)} of {len(solved)} fits of the {type(template).__name__} path stopped "
            f"before their tolerance was met; the worst is certified to be within a relative gap "
            f"of {worst:.2e} of its optimum (tol={template.tol:g})",
            ConvergenceWarning,
            stacklevel=3,
        )
