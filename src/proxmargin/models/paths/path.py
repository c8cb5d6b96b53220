"""A path: models of the same data for many strengths of the penalty."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from proxmargin.data.designs import as_design
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.kinds import Features
from proxmargin.data.inputs.parameters import check_number
from proxmargin.data.inputs.validation import validated_features
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.predicting import LogisticProbabilities
from proxmargin.models.paths.descent import Ending
from proxmargin.models.paths.found import (
    listed,
)
from proxmargin.models.paths.grid import (
    Strength,
    at_strength,
    varying_of,
)
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList
from proxmargin.runtime.brief import Listing, html_line
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Array, Values

if TYPE_CHECKING:
    import pandas as pd


SHOWN = 10  # strengths in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """Models of many strengths, as `margin_path` found them.

    Attributes
    ----------
    strengths : (n_strengths,)
        In the order given; by default from the strongest penalty. They are ``alphas``, or ``Cs``
        for a model with ``C``, ``nus`` or ``kappas`` for one with these. With a fixed ``l2`` they
        are ``alphas = l1s + l2``.
    stacked : (n_strengths * n_rows, n_features) CSR array
        ``coef_`` of every model, in the units of the data, below each other.
    coefs_sparse : list of (n_rows, n_features) CSR arrays
        The same, one for each model.
    coefs : (n_strengths, n_rows, n_features)
        The same as one dense array, made when it is asked for.
    intercepts : (n_strengths, n_rows)
    n_nonzero : (n_strengths,) integers
        Features with a nonzero coefficient for any class.
    certificates : sequence of Certificate or CertificateList
        The proven distance of each model from the optimum. Strengths that are solved
        together (``solver`` is 'chord-newton', 'ridge-newton' or 'active-set') share their time:
        ``seconds`` is the mean over those of one call of the solver.
    classes : (n_classes,)
    scale : (n_features,)
        Standard deviations of the features where they are standardised, else ones.
    template : estimator
        Has the parameters that all models share; `model` copies it and adds the solution.
    ended : str
        Why there are no further strengths: 'complete', 'interrupted', where ``stop_at`` was
        given 'explained' or 'flat', and where ``max_features`` was 'features'.
    weights : (n_strengths * n_rows, n_samples) CSR array, optional
        Weights of the samples in the coefficients of every model, if models have ``dual_coef_``.
    l2 : float, optional
        The ridge part of all models, where it was fixed.
    models : sequence of estimators
        The fitted models, where each was fitted on its own.
    explained_loss : (n_strengths,), optional
        `deviance_ratio`; None for paths in nu and kappa, and with a fixed ``l2``.

    See Also
    --------
    margin_path : Fits a path.
    PathDisplay : Draws one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SparseLogisticRegression, margin_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> lasso = SparseLogisticRegression(l1_ratio=1.0, standardize=True)
    >>> path = margin_path(lasso, X, y, alphas=[0.2, 0.1, 0.05])
    >>> path.n_nonzero.tolist(), path.deviance_ratio.round(2).tolist()
    ([3, 4, 4], [0.4, 0.6, 0.73])
    >>> path.coef(0.07).shape, path.predict_proba(X).shape
    ((1, 30), (3, 569, 2))
    """

    strengths: Array
    stacked: sparse.csr_array
    intercepts: Array
    certificates: Sequence[Certificate | CertificateList]
    classes: Values
    scale: Array
    template: MarginEstimator = field(repr=False)
    ended: str = Ending.COMPLETE.value
    weights: sparse.csr_array | None = field(default=None, repr=False)
    l2: float | None = None
    models: Sequence[MarginEstimator] = field(default=(), repr=False)
    explained_loss: Array | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return self.strengths.size

    def __repr__(self) -> str:
        used, name = self.n_nonzero, self.strength.name
        if not len(self):
            return f"<Path of {type(self.template).__name__}: no {name}s>"
        return (
            f"<Path of {type(self.template).__name__}: {len(self)} {name}s from "
            f"{self.strengths[0]:.3g} to {self.strengths[-1]:.3g}, {used.min()} to {used.max()} of "
            f"{self.stacked.shape[1]} features>"
        )

    def _repr_html_(self) -> str:
        picked = np.unique(np.linspace(0, len(self) - 1, SHOWN).round().astype(int))
        rows = [
            (
                f"{self.strengths[k]:.3g}",
                str(self.n_nonzero[k]),
                f"{self.certificates[k].relative_gap:.1e}",
            )
            for k in picked[: len(self)]
        ]
        headings = (self.strength.name, "features", "relative gap")
        return f"{html_line(repr(self).strip('<>'))}{Listing(headings, rows).html()}"

    @property
    def strength(self) -> Strength:
        """The parameter that varies along the path."""
        return varying_of(self.template)

    @property
    def alphas(self) -> Array:
        return self._strengths_named("alpha")

    @property
    def Cs(self) -> Array:
        return self._strengths_named("C")

    @property
    def nus(self) -> Array:
        return self._strengths_named("nu")

    @property
    def kappas(self) -> Array:
        return self._strengths_named("kappa")

    @property
    def l1s(self) -> Array:
        """The l1 parts of elastic nets."""
        alphas = self._strengths_named("alpha")
        if self.l2 is not None:
            return alphas - self.l2
        return alphas * getattr(self.template, "norm_share", 1.0)

    def _strengths_named(self, name: str) -> Array:
        if self.strength.name != name:
            own = self.strength.name
            raise AttributeError(f"this is a path in {own}: it has {own}s and no {name}s")
        return self.strengths

    def _picked(self, index: NDArray[np.intp]) -> Path:
        """The path of some of its strengths, in their order."""
        rows = (index[:, None] * self._rows + np.arange(self._rows)).ravel()
        return replace(
            self,
            strengths=self.strengths[index],
            stacked=self.stacked[rows],
            weights=None if self.weights is None else self.weights[rows],
            intercepts=self.intercepts[index],
            certificates=[self.certificates[i] for i in index],
            models=[self.models[i] for i in index] if self.models else (),
            explained_loss=None if self.explained_loss is None else self.explained_loss[index],
        )

    @property
    def _rows(self) -> int:
        """Number of rows of the coefficients of one model."""
        return int(self.intercepts.shape[1])

    def _place(self, index: int) -> slice:
        """The rows of one model."""
        return slice(index * self._rows, (index + 1) * self._rows)

    def _coef_sparse(self, index: int) -> sparse.csr_array:
        return self.stacked[self._place(index)]

    @property
    def coefs_sparse(self) -> list[sparse.csr_array]:
        return [self._coef_sparse(index) for index in range(len(self))]

    @property
    def coefs(self) -> Array:
        return np.reshape(self.stacked.toarray(), (len(self), self._rows, -1))

    @property
    def n_nonzero(self) -> NDArray[np.intp]:
        if self._rows == 1:
            return np.diff(self.stacked.indptr).astype(np.intp)
        pairs = pairwise(self.stacked.indptr[:: self._rows])
        return np.array([np.unique(self.stacked.indices[a:b]).size for a, b in pairs], np.intp)

    @property
    def deviance_ratio(self) -> Array:
        """The share of the null model's loss that each model explains, (n_strengths,).

        ``1 - loss / null loss`` on the data of the path, weighted as in the fits; of a logistic
        model glmnet's ``dev.ratio``. Of one class against the rest, losses are summed over the
        classes. NaN where features without a penalty alone separate the classes.
        """
        if self.explained_loss is None:
            raise AttributeError(
                "deviance_ratio is of paths in alpha or C, without a fixed l2: other models share "
                "no loss along their path"
            )
        return self.explained_loss

    def coef(self, strength: float) -> Array:
        """Coefficients at a strength between those of the path, (n_rows, n_features).

        Linear interpolation in the strength between the two neighbours, as glmnet's
        ``coef(fit, s=)``: no fit, and no certificate. The model that is optimal at this strength
        is ``estimator.set_params(alpha=strength).fit(X, y)``.

        Raises
        ------
        ValueError
            The strength is beyond those of the path.
        """
        (first, second), share = self._neighbours(strength)
        between = (1 - share) * self._coef_sparse(first) + share * self._coef_sparse(second)
        return np.asarray(between.toarray())

    def intercept(self, strength: float) -> Array:
        """Intercepts at a strength, (n_rows,), interpolated as in `coef`."""
        (first, second), share = self._neighbours(strength)
        return np.asarray((1 - share) * self.intercepts[first] + share * self.intercepts[second])

    def _neighbours(self, strength: float) -> tuple[tuple[int, int], float]:
        """The models between whose strengths this one is, and the share of the second."""
        check_number(self.strength.name, strength, low=0.0)
        order = np.argsort(self.strengths, kind="stable")
        grid = self.strengths[order]
        if not len(grid) or not grid[0] <= strength <= grid[-1]:
            ends = f"from {grid[0]:.6g} to {grid[-1]:.6g}" if len(grid) else "of no strength"
            raise ValueError(
                f"{self.strength.name}={strength:g} is beyond this path, {ends}: give its strength "
                f"to margin_path ({self.strength.name}s=), or fit the estimator with it"
            )
        above = min(max(int(np.searchsorted(grid, strength)), 1), max(len(grid) - 1, 0))
        below = max(above - 1, 0)
        step = grid[above] - grid[below]
        share = float((strength - grid[below]) / step) if step > 0 else 0.0
        return (int(order[below]), int(order[above])), share

    def model(self, index: int) -> MarginEstimator:
        """The fitted estimator for ``strengths[index]``."""
        index = range(len(self))[index]
        if self.models:
            return copy(self.models[index])
        model = at_strength(self.template, self.strengths[index])
        model.coef_, model.intercept_ = (
            self._coef_sparse(index).toarray(),
            self.intercepts[index].copy(),
        )
        model.classes_ = self.classes
        if model.standardize:
            model.feature_scale_ = self.scale
        model.certificate_ = self.certificates[index]
        model.n_iter_ = max(model.certificate_.n_iter, 1)
        if self.weights is not None:
            weights: Any = self.weights[self._place(index)]
            support = np.unique(weights.indices).astype(np.intp)
            model.__dict__.update(support_=support, dual_coef_=weights[:, support].toarray())
        return model

    def scores(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """``decision_function`` of every model: (n_strengths, n_samples[, n_classes]).

        One product with the data, of the features that any model has.
        """
        offset = by_sample("offset", offset, X)
        X = validated_features(self.template, X)
        offset = self.template._predicting_offset(offset, X, self.classes)
        scores = self._scores_of(X)
        return scores if offset is None else scores + offset

    def _scores_of(self, X: Any, rows: NDArray[np.intp] | None = None) -> Array:
        """`scores` of validated samples, or of some ``rows`` of them, without offset."""
        design, stacked = as_design(X), self.stacked
        used, places = listed(stacked.indices, design.n_features)
        owner = np.repeat(np.arange(stacked.shape[0]), np.diff(stacked.indptr))
        coef = np.zeros((used.size, stacked.shape[0]))
        coef[places, owner] = stacked.data
        if rows is not None:
            design = design.part(rows, used)
        elif used.size < design.n_features:
            design = design.columns(used)
        flat, shape = design.scores(coef), self.intercepts.shape
        scores = flat.reshape(len(flat), *shape).swapaxes(0, 1) + self.intercepts[:, None, :]
        return scores if self._rows > 1 else scores[:, :, 0]

    def predict(self, X: Values, offset: Array | None = None) -> Values:
        """The class with the largest score by every model, (n_strengths, n_samples)."""
        scores = self.scores(X, offset)
        codes = scores.argmax(axis=2) if scores.ndim == 3 else (scores > 0).astype(int)
        return np.asarray(self.classes[codes])

    def predict_proba(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Probabilities by every model, (n_strengths, n_samples, n_classes).

        Raises
        ------
        AttributeError
            The models have none: `proxmargin.CalibratedMargin` makes some of any model.
        """
        template = self.template
        if not isinstance(template, LogisticProbabilities):
            name = type(template).__name__
            raise AttributeError(f"{name} has no predict_proba: use CalibratedMargin({name}())")
        return np.stack([template._probabilities_of(each) for each in self.scores(X, offset)])

    def to_frame(self) -> pd.DataFrame:
        """The nonzero coefficients, one a row: columns strength, class, feature and coef.

        The first column is called ``alpha`` or ``C``. Features have their names if the path was
        fitted to a data frame, otherwise their numbers. Models without features have no row.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        pandas = optional("pandas", "a data frame of coefficients")
        listed = self.stacked.tocoo()
        rows = self.intercepts.shape[1]
        names = getattr(self.template, "feature_names_in_", np.arange(listed.shape[1]))
        positive = self.classes[1:] if rows == 1 else self.classes
        frame: pd.DataFrame = pandas.DataFrame(
            {
                self.strength.name: self.strengths[listed.row // rows],
                "class": positive[listed.row % rows],
                "feature": names[listed.col],
                "coef": listed.data,
            }
        )
        return frame
