"""What a search has found: the choice among the scores of its folds, and the chosen model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from proxmargin.data.inputs.kinds import ByFeature, Features, Labels, Scoring
from proxmargin.data.inputs.parameters import check_choice, check_number
from proxmargin.data.inputs.validation import offset_argument
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.factors import unpenalised
from proxmargin.models.fitting.predicting import PredictsByScores
from proxmargin.models.paths.grid import Strength
from proxmargin.models.paths.path import Path
from proxmargin.models.selection.folds import NO_REFIT, Fold, Judged, ValidatedRows
from proxmargin.models.selection.scoring import names_checked, score_of
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Array, Estimator, Values

if TYPE_CHECKING:
    import pandas as pd


# mean scores closer than this count as equal: the order of summation alone may make them differ
TIE = 1e-12


def best(scores: Array) -> tuple[int, int]:
    """Index of the highest mean of scores, (n_l1_ratios, n_strengths, n_folds); among equals the
    first l1_ratio, then the strongest penalty. ValueError: no strength has a score on every
    fold."""
    means = _means(scores)
    if not np.isfinite(means).any():
        raise ValueError("the scoring gave no number for any strength; choose another one")
    row, column = np.unravel_index(int(np.argmax(means >= means.max() - TIE)), means.shape)
    return int(row), int(column)


def within_one_error(scores: Array) -> tuple[int, int]:
    """The strongest penalty whose mean is within one standard error of the best, at its l1_ratio.
    Friedman, Hastie and Tibshirani (2010), section 5."""
    row, column = best(scores)
    enough = _means(scores)[row, column] - standard_errors(scores)[row, column]
    return row, int(np.argmax(_means(scores)[row] >= enough))


def standard_errors(scores: Array) -> Array:
    """Standard errors of the mean scores over the folds, (n_l1_ratios, n_strengths)."""
    count = scores.shape[2]
    spread = scores.std(axis=2, ddof=1) if count > 1 else np.zeros(scores.shape[:2])
    return np.asarray(spread / np.sqrt(count))


def _means(scores: Array) -> Array:
    means = scores.mean(axis=2)
    return np.where(np.isnan(means), -np.inf, means)


SAME = 1e-9  # relative difference of a strength from one that it names
CHOICES = {"best": best, "1se": within_one_error}


def out_of_fold(
    data: ValidatedRows, folds: list[Fold], shape: tuple[int, ...], results: list[Judged]
) -> Array:
    """Held-out scores of each row, by models of the folds that do not train on it. The mean if a
    row was held out several times; NaN if never."""
    outputs = results[0].decisions[0].shape[2:]
    total = np.zeros((*shape, data.targets.codes.size, *outputs))
    times = np.zeros(data.targets.codes.size)
    for fold, result in zip(folds, results, strict=True):
        total[:, :, fold.test] += np.stack(result.decisions)
        times[fold.test] += 1
    times[times == 0] = np.nan
    return total / times.reshape(-1, *[1 for _ in outputs])


def _plain_has(name: str) -> Callable[[Any], bool]:
    """Whether fits of the class have it without calibration."""
    return lambda self: any(
        name in vars(each) for each in self.plain.__mro__ if each is not PredictsByScores
    )


class PublishesResults:
    """What a search publishes: scores, the choice among them, and predictions by the chosen model,
    ``best_estimator_``, which is of the class ``plain``."""

    plain: ClassVar[type[MarginEstimator]]
    strength: ClassVar[Strength]
    scoring: Scoring
    l1_ratios: object
    penalty_factor: ByFeature
    gamma_: float
    l1_ratio_: float
    cv_scores_: Array
    oof_scores_: Array
    best_index_: int
    best_estimator_: Estimator
    path_: Path
    _scores_with_weights: Callable[[], bool]

    @property
    @abstractmethod
    def _shares(self) -> tuple[float, ...]:
        """The gammas of relaxed fits; 1 alone for the penalised model."""

    @property
    def _of_rows(self) -> dict[str, Array]:
        """What tells the rows of ``cv_scores_`` apart: l1_ratio, and gamma of relaxed fits."""
        shares, columns = np.array(self._shares), {}
        if hasattr(self, "l1_ratios"):
            ratios = np.atleast_1d(np.asarray(self.l1_ratios, float))
            columns["l1_ratio"] = np.repeat(ratios, shares.size)
            if shares.size > 1 or shares[0] != 1.0:
                columns["gamma"] = np.tile(shares, ratios.size)
        return columns

    def _warn_of_edge(self) -> None:
        """Warn if the best strength is an end of the grid, where a better one may lie beyond it."""
        name, column = self.strength.name, self.best_index_ % self.cv_scores_.shape[1]
        last, chosen = self.cv_scores_.shape[1] - 1, getattr(self, f"{self.strength.name}_")
        if last == 0 or 0 < column < last or chosen == 0.0:
            return
        which, beyond = ("weakest", "weaker") if column else ("strongest", "stronger")
        advice = f"a {beyond} one may be better, give other {name}s"
        path = getattr(self, "path_", None)
        free = 0 if path is None else unpenalised(self, path.stacked.shape[1]).size
        if path is not None and path.n_nonzero[column] <= free:
            advice = f"its model has no features{' with a penalty' if free else ''}"
        # a relaxed fit may have been chosen at an end of the grid beside one that does not exist
        place = self.best_index_ // self.cv_scores_.shape[1]
        neighbour = self.cv_scores_[place, column - 1 if column else 1]
        if self._shares[place % len(self._shares)] < 1.0 and np.isnan(neighbour).any():
            advice += (
                f"; relaxed={getattr(self, 'relaxed', False)!r}: on some fold the next one has no "
                f"fit without a penalty, as {NO_REFIT}; add 1 to relaxed for the penalised models"
            )
        warnings.warn(
            f"the chosen {name}={chosen:.3g} is the {which} penalty of its grid: {advice}",
            stacklevel=users_level(),
        )

    def _of_complete_folds(self) -> Self:
        """A copy with the scores of complete folds only, after an interruption; else the object."""
        if hasattr(self, "best_index_"):
            return self
        shown = copy(self)
        penalised = self.cv_scores_[:: len(self._shares)]  # relaxed fits may not exist
        shown.cv_scores_ = self.cv_scores_[:, :, ~np.isnan(penalised).any(axis=(0, 1))]
        return shown

    @property
    def _row(self) -> int:
        """The row of the grid that belongs to the chosen l1_ratio and gamma."""
        return int(self.best_index_ // self.cv_scores_.shape[1])

    @property
    def cv_results_(self) -> pd.DataFrame:
        """One row for each l1_ratio and strength: mean, standard error and rank of the scores, and
        the score of each fold; column names as in scikit-learn's searches.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        check_is_fitted(self, "cv_scores_")
        pandas = optional("pandas", "cv_results_, a data frame of cv_scores_,")
        name, flat = self.strength.name, self.cv_scores_.reshape(-1, self.cv_scores_.shape[2])
        grid = getattr(self, f"{name}s_")
        means = flat.mean(axis=1)
        ranks = rankdata(np.where(np.isnan(means), np.inf, -means), method="min")
        frame: pd.DataFrame = pandas.DataFrame(
            {
                **{row: values.repeat(grid.shape[1]) for row, values in self._of_rows.items()},
                name: grid.ravel(),
                "mean_test_score": means,
                "std_test_score": flat.std(axis=1),
                "standard_error": standard_errors(self.cv_scores_).ravel(),
                "rank_test_score": ranks.astype(np.int32),
                **{f"split{k}_test_score": column for k, column in enumerate(flat.T)},
            }
        )
        return frame

    def at(self, choice: str | float) -> MarginEstimator:
        """The fitted plain classifier of another choice: a model of ``path_``, without a new fit.

        Parameters
        ----------
        choice : {'best', '1se'} or float
            As ``selection``; or one of the strengths, at the chosen l1_ratio.

        Raises
        ------
        ValueError
            No such choice or strength; the search has no ``path_``, as with a nonlinear kernel or
            ``refit=False``; the chosen coefficients are relaxed, which those of ``path_`` are not.
        """
        check_is_fitted(self, "best_index_")
        name, kind = self.strength.name, type(self).__name__
        if not hasattr(self, "path_"):
            raise ValueError(f"this {kind} has no path_: fit {self.plain.__name__}({name}=...)")
        gamma = getattr(self, "gamma_", 1.0)
        if gamma != 1.0:
            raise ValueError(
                f"the models of path_ are not relaxed, and the chosen one is, with gamma_="
                f"{gamma:g}: fit {kind} with the other selection"
            )
        if isinstance(choice, str):
            check_choice("choice", choice, CHOICES)
            _, column = CHOICES[choice](self.cv_scores_[self._row : self._row + 1])
            return self.path_.model(column)
        check_number("choice", choice, low=0.0)
        strengths = self.path_.strengths
        found = np.flatnonzero(np.isclose(strengths, choice, rtol=SAME, atol=0.0))
        if not found.size:
            raise ValueError(
                f"{name}={choice:g} is none of {name}s_[{self._row}]: between them path_.coef"
                f"({choice:g}) interpolates coefficients"
            )
        return self.path_.model(int(found[0]))

    def _by_best(self, method: str, X: Features, offset: ArrayLike | None) -> Values:
        check_is_fitted(self, "best_estimator_")
        with names_checked(self, X):
            given = offset_argument(offset)
            found: Values = getattr(self.best_estimator_, method)(X, **given)
        return found

    def decision_function(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Scores of the chosen classifier: (n_samples,) if binary, else one column a class.
        ``offset``, (n_samples,), is added to them; so in the methods below."""
        return self._by_best("decision_function", X, offset)

    def predict(self, X: Features, offset: ArrayLike | None = None) -> Values:
        """The class with the largest score, (n_samples,)."""
        return self._by_best("predict", X, offset)

    def score(
        self,
        X: Features,
        y: Labels | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """The value of ``scoring``, which is the accuracy of `predict` if ``scoring`` is None.
        ``sample_weight``, (n_samples,), weighs the samples; a scoring that takes no weights ignores
        them with a warning."""
        check_is_fitted(self, "best_estimator_")
        if sample_weight is not None and not self._scores_with_weights():
            sample_weight = None
        with names_checked(self, X):
            return score_of(self.scoring, self.best_estimator_, X, y, sample_weight, offset)

    @available_if(_plain_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Probabilities of the classes, (n_samples, n_classes)."""
        return self._by_best("predict_proba", X, offset)

    @available_if(_plain_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Logarithms of `predict_proba`."""
        return self._by_best("predict_log_proba", X, offset)
