"""Classifiers that choose their strength by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature, signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.kinds import Features, Labels, Scoring, Seed, Splits
from proxmargin.data.inputs.parameters import (
    check_choice,
    check_flag,
    check_number,
    check_threads,
    is_number_of_folds,
    real_numbers,
)
from proxmargin.data.inputs.targets import refuse_small_classes
from proxmargin.data.inputs.validation import offset_argument, validated, validated_weights
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.bases import ClassifierMixin
from proxmargin.models.fitting.coefficients import HasCoefficients
from proxmargin.models.fitting.factors import unpenalised, warn_if_separated
from proxmargin.models.fitting.notebook import CertifiedEstimator
from proxmargin.models.fitting.parameters import DataParameters, SolverParameters
from proxmargin.models.fitting.predicting import PredictsByScores
from proxmargin.models.paths.compute import compute_path, with_explained
from proxmargin.models.paths.fit_by_fit import refitted
from proxmargin.models.paths.found import unmet_of, warn_of_unmet
from proxmargin.models.paths.grid import Strength, default_grid, parameters_of, strength_of
from proxmargin.models.paths.path import Path
from proxmargin.models.selection.folds import (
    NO_REFIT,
    Fold,
    Judging,
    Plan,
    ValidatedRows,
    check_refits,
    check_relaxed,
    folds_of,
    kernel_models,
    mixed_models,
    path_models,
    shares_of,
)
from proxmargin.models.selection.results import CHOICES, SAME, out_of_fold, standard_errors
from proxmargin.models.selection.scoring import (
    RoutesMetadata,
    forget,
    judge_of,
    names_checked,
    no_convergence_warnings,
    score_of,
    splitter_of,
    warn_of_ordered_rows,
)
from proxmargin.runtime.brief import shown, users_level, with_pages
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.optional import optional
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import quiet_threads
from proxmargin.runtime.types import Array, Estimator, Facts, Values

if TYPE_CHECKING:
    import pandas as pd

# range of C when only a count is given with a nonlinear kernel: the critical strength is not known
KERNEL_RANGE = (0.01, 1000.0)


def constructor(search: type, plain: type, without: Collection[str]) -> Callable[..., None]:
    """The ``__init__`` of a search whose plain classifier is a user's: the parameters of the
    ``search`` itself, then those of the other, with their defaults, by keyword."""
    own = signature(search).parameters.values()
    others = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(plain).parameters.items()
        if name not in without
    ]
    first = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    mine = [each for each in own if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    accepted = Signature([first, *mine, *others])

    def __init__(self: object, *args: object, **kwargs: object) -> None:
        bound = accepted.bind(self, *args, **kwargs)
        bound.apply_defaults()
        vars(self).update({n: value for n, value in bound.arguments.items() if n != "self"})

    __init__.__signature__ = accepted  # type: ignore[attr-defined]
    return __init__


def _plain_has(name: str) -> Callable[[Any], bool]:
    """Whether fits of the class have it without calibration."""
    return lambda self: any(
        name in vars(each) for each in self.plain.__mro__ if each is not PredictsByScores
    )


class _Found:
    """What a search publishes besides the chosen strength."""

    gamma_: float
    l1_ratio_: float
    cv_scores_: Array
    oof_scores_: Array
    best_index_: int
    best_estimator_: Estimator
    path_: Path


@dataclass(eq=False, repr=False)
class CrossValidated(
    RoutesMetadata,
    _Found,
    HasCoefficients,
    ClassifierMixin,
    CertifiedEstimator,
    SolverParameters,
    DataParameters,
):
    """Base of the classifiers that choose the strength of a plain one by cross-validation. A
    subclass names its plain classifier, and takes the parameters of that one, by keyword, without
    the strength."""

    plain: ClassVar[type[MarginEstimator]]
    strength: ClassVar[Strength]
    _replaced_parameters: ClassVar[frozenset[str]]

    eps: float = 1e-3
    cv: Splits = 5
    scoring: Scoring = None
    selection: Literal["best", "1se"] = "best"
    n_jobs: int | None = None
    keep_scores: bool = False
    refit: bool = True
    random_state: Seed = 0

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "plain" not in vars(cls):
            return
        plain = cls.plain  # its parameters are those of the search, too
        cls.strength = strength_of(plain())
        cls._replaced_parameters = frozenset({cls.strength.name, "l1_ratio", "eta", "n_jobs"})
        if "__init__" not in vars(cls) and any("plain" in vars(base) for base in cls.__mro__[1:]):
            given = constructor(cls, plain, {*cls._replaced_parameters, "random_state"})
            cls.__init__ = given  # type: ignore[method-assign]

    @with_pages
    def fit(
        self,
        X: Features,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        **params: ArrayLike | None,
    ) -> Self:
        """Fit all folds, choose the strength, and fit all rows with it.

        Parameters
        ----------
        X : (n_samples, n_features) array, data frame, or CSR / CSC matrix
        y : (n_samples,) labels of any type
        sample_weight : (n_samples,), optional
            Weights of the samples, in the fits and in the scores.
        offset : (n_samples,), optional
            Added to the scores in the fits and for the held-out rows; as in the plain classifier.
        **params
            ``groups``, which folds keep whole if ``cv`` is a number or a splitter that does so;
            with scikit-learn's metadata routing whatever splitter and
            scorer ask for.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            An invalid parameter or invalid data, named in the message; a fold without a class.
        KeyboardInterrupt
            After an interruption; ``cv_scores_`` of what is complete is published first, and the
            path of all rows as far as it goes.

        Warns
        -----
        ConvergenceWarning
            When fits ended before their gap met ``tol``; names the worst gap.
        UserWarning
            When samples are weighted but the scoring takes no ``sample_weight``; when the choice is
            the strongest or the weakest penalty of a grid of several.
        """
        self._check_parameters()
        sample_weight = by_sample("sample_weight", sample_weight, X)
        offset = by_sample("offset", offset, X)
        params = {name: by_sample(name, each, X) for name, each in params.items()}
        routed = self._routed(sample_weight, params)
        template = self._template()
        given = X
        X, y = validated(template, X, y)
        weights = validated_weights(sample_weight, X)
        targets = template._encoded(y, weights, given)
        if offset is not None:
            targets = template._with_offset(targets, offset, X)
        data = ValidatedRows(
            X,
            targets,
            weights,
            routed.scorer.score,
            self.__sklearn_tags__().input_tags.pairwise,
        )
        if self._shares != (1.0,):
            check_relaxed(template, targets.classes.size)
        folds = self._folds(data, routed.splitter.split)
        if not data.pairwise:
            names = getattr(template, "feature_names_in_", None)
            groups = routed.splitter.split.get("groups")
            warn_of_ordered_rows(self.cv, groups, X, targets.codes, names)
        with interrupts:
            self._search(template, data, folds)
        return self

    def _search(self, template: MarginEstimator, data: ValidatedRows, folds: list[Fold]) -> None:
        """Score all strengths on all folds, choose, and fit all rows."""
        names = template._without_names()  # the data are arrays from here on
        templates = self._templates(template)
        assembly = templates[0]._assembled(data.design, data.targets) if self._is_linear else None
        grids = np.stack([self._grid(each, assembly) for each in templates])
        last = 1 if assembly is None else grids.shape[1]
        fits = grids.size * len(folds) + self.refit * last
        label = f"{type(self).__name__}: fits"
        progress = ProgressBar(label, fits, shown=bool(self.verbose))
        forget(self)
        known = {n: value for n, value in vars(template).items() if n == "n_features_in_"}
        self.__dict__.update(names, **known)
        with progress, quiet_threads(0):  # the number of BLAS threads changes the last bits of sums
            ahead = None
            if self.refit and assembly is not None and len(templates) == 1 and not self.callbacks:
                only = self._chosen(templates[0], names)
                ahead = partial(compute_path, only, assembly, grids[0], notify=progress.advance)
            plan = Plan(templates, grids, self._shares)
            models = path_models if self._is_linear else kernel_models
            judging = Judging(
                plan, models, judge_of(self.scoring, plan.templates[0]), self.keep_scores
            )
            results, path = judging.of_folds(data, folds, progress, self.n_jobs, ahead)
            self.classes_ = data.targets.classes
            grid = np.repeat(grids, len(plan.shares), axis=0)
            setattr(self, f"{self.strength.name}s_", grid)
            self.cv_scores_ = np.stack([result.scores for result in results], axis=2)
            _stop_if_interrupted(progress)
            if self.keep_scores:
                self.oof_scores_ = out_of_fold(data, folds, plan.shape, results)
            check_refits(self.cv_scores_, self._shares)
            row, column = CHOICES[self.selection](self.cv_scores_)
            self.best_index_ = row * grid.shape[1] + column
            chosen = {name: values[row] for name, values in self._of_rows.items()}
            chosen[self.strength.name] = grid[row, column]
            self.__dict__.update({f"{name}_": float(value) for name, value in chosen.items()})
            fits = sum(one.fits for one in results)
            unmet = [certificate for one in results for certificate in one.unmet]
            if self.refit:
                unfitted = self._chosen(templates[row // len(plan.shares)], names)
                best, more, short = self._refitted(unfitted, data, assembly, column, progress, path)
                fits += more
                unmet += short
                best.__dict__.update(names)
                self.best_estimator_ = best
                learned = {n: v for n, v in vars(best).items() if n.endswith("_") and n[0] != "_"}
                self.__dict__.update(learned)
        warn_if_separated(assembly.problems if assembly else [])
        warn_of_unmet(type(self).__name__, template.tol, fits, unmet)
        self._warn_of_edge()

    def _chosen(self, template: MarginEstimator, names: Facts) -> MarginEstimator:
        """A copy of the template to fit to all rows: with the callbacks and the feature names."""
        chosen = copy(template)
        chosen.__dict__.update(names, callbacks=self.callbacks)
        return chosen

    def _refitted(
        self,
        chosen: MarginEstimator,
        data: ValidatedRows,
        assembly: Assembly | None,
        column: int,
        progress: ProgressBar,
        path: Path | None,
    ) -> tuple[MarginEstimator, int, list[Any]]:
        """The chosen classifier fitted to all rows, the number of fits, the unmet certificates."""
        progress.starts("all samples")
        name = self.strength.name
        grid = getattr(self, f"{name}s_")[self._row]
        if assembly is None:
            chosen.set_params(**{name: float(grid[column])})
            with no_convergence_warnings():
                chosen.fit(data.X, data.labels, data.sample_weight, data.targets.offset)
            return chosen, 1, unmet_of([chosen.certificate_])
        own = chosen._reassembled(assembly)
        if path is None:
            path = compute_path(chosen, own, grid, notify=progress.advance)
        self.path_ = path = with_explained(path, own)
        _stop_if_interrupted(progress)
        best, fits, short = path.model(column), len(path), unmet_of(path.certificates)
        if self.callbacks or unmet_of([best.certificate_]):  # else the model of the path will do
            with no_convergence_warnings():
                refitted(best, assembly)
            fits, short = fits + 1, short + unmet_of([best.certificate_])
        if hasattr(self, "gamma_"):
            self.gamma_ = mixed_models(best, path, own, column, self.gamma_)
        return best, fits, short

    def _check_parameters(self) -> None:
        check_choice("selection", self.selection, CHOICES)
        check_flag("keep_scores", self.keep_scores)
        check_flag("refit", self.refit)
        check_number("eps", self.eps, low=0.0, low_open=True, high=1.0)
        check_threads(self.n_jobs)
        plain = self._template()
        plain.__dict__.update(callbacks=self.callbacks, verbose=self.verbose)
        plain._check_parameters()
        given = getattr(self, "l1_ratios", 1.0)
        try:
            ratios = np.atleast_1d(real_numbers("l1_ratios", given))
        except ValueError:
            ratios = np.empty(0)
        shares_of(getattr(self, "relaxed", False))
        if ratios.ndim != 1 or not ratios.size or not np.all((ratios >= 0) & (ratios <= 1)):
            raise ValueError(f"l1_ratios must be numbers in [0, 1], got {shown(given)}")

    def _template(self) -> MarginEstimator:
        """The plain classifier with the parameters that it shares with this one."""
        parameters = parameters_of(self.plain)  # type: ignore[arg-type]  # classes are hashable
        names = [n for n in parameters if n not in self._replaced_parameters]
        settings = {name: getattr(self, name) for name in names}
        template = self.plain(**settings)
        unit = {self.strength.name: 1.0}  # what paths scale
        template.__dict__.update(**unit, callbacks=(), verbose=0)
        return template

    def _templates(self, template: MarginEstimator) -> list[MarginEstimator]:
        """One template for each l1_ratio, with checked parameters."""
        ratios = np.atleast_1d(getattr(self, "l1_ratios", np.nan)).tolist()
        templates = [copy(template) for _ in ratios]
        for each, ratio in zip(templates, ratios, strict=True):
            if hasattr(self, "l1_ratios"):
                each.set_params(l1_ratio=ratio)
            each._check_parameters()
            each._check_model()
        return templates

    @property
    def _shares(self) -> tuple[float, ...]:
        """The gammas of relaxed fits; 1 alone for the penalised model."""
        return shares_of(getattr(self, "relaxed", False))

    @property
    def _is_linear(self) -> bool:
        kernel = getattr(self, "kernel", "linear")
        return isinstance(kernel, str) and kernel == "linear"

    def _grid(self, template: MarginEstimator, assembly: Assembly | None) -> Array:
        """The grid of strengths, from the strongest penalty to the weakest."""
        values = getattr(self, f"{self.strength.name}s")
        if not isinstance(values, Integral) or isinstance(values, bool):
            grid = self.strength.checked(values)
            return grid[self.strength.order(grid)]
        if assembly is None:
            check_number(f"{self.strength.name}s", values, low=1, integer=True)
            return np.geomspace(*KERNEL_RANGE, int(values))
        return default_grid(template, template._reassembled(assembly), int(values), self.eps)

    def _folds(self, data: ValidatedRows, arguments: Facts) -> list[Fold]:
        groups = arguments.get("groups")
        splitter = splitter_of(self.cv, data.labels, groups, self.random_state)
        if is_number_of_folds(self.cv):
            counts = np.bincount(data.targets.codes)
            refuse_small_classes(data.targets.classes, counts, 2, "cross-validation needs")
        splits = splitter.split(data.X, data.labels, **arguments)
        return folds_of(splits, data)

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._template().__sklearn_tags__().input_tags
        return tags


def _stop_if_interrupted(progress: ProgressBar) -> None:
    if interrupts.pending:
        done = f"{progress.done} of {progress.total} fits"
        raise KeyboardInterrupt(f"after {done}; cv_scores_ holds what is complete")
