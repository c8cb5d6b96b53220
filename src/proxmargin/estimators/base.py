"""The base of the scikit-learn estimators: data and parameters to problems, and back."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from proxmargin.callbacks import History, Progress
from proxmargin.certificates.certify import certify
from proxmargin.compiled.clock import clock
from proxmargin.designs import (
    Design,
    RowView,
    StandardizedDesign,
    as_design,
    standardized,
)
from proxmargin.estimators import beyond_memory
from proxmargin.estimators.assembly import (
    ALL,
    Assembly,
    Features,
    certificate_of,
    unmet,
    with_zero_sums,
    without_rounding,
)
from proxmargin.estimators.coefficients import HasCoefficients
from proxmargin.estimators.context import FitContext
from proxmargin.estimators.frames import users_level
from proxmargin.estimators.notebook import CertifiedEstimator
from proxmargin.estimators.parameters import DataParameters, SolvingParameters
from proxmargin.estimators.runs import Runs, at_once, for_each
from proxmargin.inputs.aligned import by_sample
from proxmargin.inputs.beyond_memory import is_beyond_memory, opened
from proxmargin.inputs.parameters import refuse_unknown
from proxmargin.inputs.targets import Targets
from proxmargin.inputs.validation import (
    check_choice,
    check_flag,
    check_number,
    check_threads,
    check_verbose,
    offset_argument,
    validated,
    validated_features,
    validated_offset,
    validated_part,
    validated_weights,
)
from proxmargin.loop.incumbent import Certify
from proxmargin.loop.outcome import Solution, Status
from proxmargin.loop.report import Report, interval_of
from proxmargin.loop.solver import Solver, State
from proxmargin.loop.stopping import RULES, TINY_WORK, Effort, Stop
from proxmargin.losses import Loss, Shifted
from proxmargin.penalties import (
    ElasticNet,
    Penalty,
    Pinned,
    Ridge,
    SumToZero,
)
from proxmargin.problem import Point, Problem
from proxmargin.resuming.identity import Identity
from proxmargin.resuming.journal import journal_of
from proxmargin.runtime.brief import shown
from proxmargin.runtime.cluster import threads_here
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.scratch import beside
from proxmargin.solvers.auto import Choice, choose
from proxmargin.solvers.labelings import Axes, FitsLabelings
from proxmargin.solvers.names import named_solver

__all__ = ["NAMES", "MarginEstimator"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# values of multi_class in other libraries
ELSEWHERE = {
    "multinomial": "classes are fitted together by multi_class='joint', which is the multinomial "
    "model in SparseLogisticRegression",
    "crammer_singer": "MulticlassSVC has the loss of Crammer and Singer",
    "ovo": "DDAGClassifier fits the pairs of classes",
}
NAMES = ("feature_names_in_", "_column_labels")  # attributes with the names of features
TINY_ENTRIES = 50_000  # features and inner products of the samples of a tiny problem


class MarginEstimator(
    HasCoefficients,
    ClassifierMixin,  # type: ignore[misc]
    CertifiedEstimator,
    SolvingParameters,
    DataParameters,
):
    """Base of the linear margin classifiers. Subclasses define the loss and the penalty.

    Every subclass takes the parameters ``fit_intercept, standardize, class_weight, solver,
    solver_options, stopping, tol, max_iter, time_limit, warm_start, callbacks, verbose,
    random_state``.
    """

    multi_class: str
    n_jobs: int | None = None
    _joint_allowed = True
    # a checkpoint belongs to one fit, so that metadata routing does not pass it on (UNUSED, which
    # says so too, is an error in subclasses whose fit has no such argument)
    __metadata_request__fit: ClassVar[Any] = {"resume_from": False}
    # why the scores of a model take no offset; empty if they do
    _without_offset: ClassVar[str] = ""
    # why a model needs all data in memory; empty if passes over blocks of rows are enough
    _in_memory: str = ""

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        refuse_unknown(cls, parameters)
        return super().__new__(cls)

    @abstractmethod
    def _check_model(self) -> None:
        """Raise ValueError for an invalid parameter of the model itself."""

    @abstractmethod
    def _losses(
        self, targets: Targets, design: Design, joint: bool, context: FitContext
    ) -> Sequence[Loss]:
        """The loss of each problem: one for all classes together, or one a class (or pair)."""

    @abstractmethod
    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        """The penalty of the coefficients of one problem."""

    def _intercept_strength(self) -> float:
        return 0.0

    # whether many fits to few samples are faster in their principal axes than in the features
    _is_faster_in_axes: ClassVar[bool] = False

    def _of_labelings(self, axes: Axes, signs: Array) -> FitsLabelings | None:
        """What fits this model to many labelings of the same samples at once, one a column of
        ``signs``; None if nothing does."""
        return None

    def _objective_scale(self, problem: Problem) -> float:
        """Factor from the objective of a problem to the objective that the model documents."""
        return 1.0

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the model and certify it.

        Parameters
        ----------
        X : (n_samples, n_features) array, data frame, or CSR / CSC matrix
            Float32 and float64 are used as they are; other types are converted to float64. Also a
            `proxmargin.Dataset` of `proxmargin.open_dataset`, which is read in passes; a Dask array
            or data frame, whose blocks stay on their workers; a CuPy or PyTorch array, which stays
            on its device.
        y : (n_samples,) labels of any type; None for a `proxmargin.Dataset`, which has its own
        sample_weight : (n_samples,), optional
            Weight 2 is the same as a repeated row, weight 0 the same as a removed one. A pandas
            Series is aligned with the index of a data frame ``X``; so is ``offset``.
        offset : (n_samples,), optional
            Added to each score with coefficient one, ``X @ coef + intercept + offset``: the scores
            of an earlier model, or known log-odds. Two classes only.
        resume_from : path-like, optional
            A file written by a `proxmargin.Checkpoint` among the callbacks of an earlier fit. The
            fit continues from there, and its result is bit for bit that of an uninterrupted fit
            (with a nonlinear kernel: up to rounding). Model, data, weights, offsets and parameters
            must be the same; limits (``max_iter``, ``time_limit``) and ``callbacks`` may differ.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            An invalid parameter or invalid data, named in the message; a checkpoint of another fit.
        OSError
            The checkpoint cannot be read.
        KeyboardInterrupt
            After an interruption; the model found so far is published first. An error that a
            callback raises, likewise.

        Warns
        -----
        ConvergenceWarning
            Once, if the fit ended before its gap met ``tol``; names the gap reached.
        """
        with interrupts, journal_of(self.callbacks, resume_from) as journal:
            context = FitContext(self._started(), journal)
            X, targets = self._checked(X, y, sample_weight, offset)
            self._fit_targets(X, targets, context)
        return self

    def fit_part(self, X: Any, y: NDArray[Any], sample_weight: Array | None) -> Self:
        """`fit` to some of the samples that another estimator has validated."""
        with interrupts, journal_of(self.callbacks, None) as journal:
            context = FitContext(self._started(), journal)
            self._check_parameters()
            self._check_model()
            X = validated_part(self, X)
            weights = validated_weights(sample_weight, X)
            targets = Targets.encode(y, weights, self.class_weight)
            self._fit_targets(X, targets, context)
        return self

    def _fit_targets(self, X: Any, targets: Targets, context: FitContext) -> None:
        """Fit the model to validated data."""
        stop = self._bounded(context.stop, *X.shape[:2])
        context.journal.begin(lambda: Identity.of(self, X, targets.classes, *targets.arrays))
        self._fit_recorded(X, targets, context.within(stop))

    def _fit_recorded(self, X: Any, targets: Targets, context: FitContext) -> None:
        """Fit the model within limits, reusing and recording minimisations in the journal."""
        self._fit_assembled(self._assembled(X, targets, context), context=context)

    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Scores ``X @ coef_.T + intercept_``: (n_samples,) if binary, else one column a class.

        Parameters
        ----------
        X : (n_samples, n_features)
        offset : (n_samples,) or 0, optional
            Added to the scores. Without it the offset is zero; give 0 to say that it is meant.

        Returns
        -------
        scores : array
            Of a `proxmargin.Dataset` an iterator of arrays, one a chunk; of a Dask collection a
            Dask array.

        Warns
        -----
        UserWarning
            The model was fitted with an offset, and none is given.
        """
        check_is_fitted(self)
        if is_beyond_memory(X):
            return beyond_memory.scores(self, X, offset)
        offset = by_sample("offset", offset, X)
        X = validated_features(self, X)
        offset = self._predicting_offset(offset, X, self.classes_)
        scores = self._scores_of(X)
        if scores.shape[1] > 1:
            return scores
        return scores[:, 0] if offset is None else scores[:, 0] + offset

    def _scores_of(self, X: Any) -> Array:
        """Scores of validated features without offset, (n_samples, n_outputs)."""
        coef = np.ascontiguousarray(self.coef_.T)
        scores: Array = as_design(X).scores(coef) + self.intercept_
        return scores

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """The class with the largest score, (n_samples,); ``offset`` as in `decision_function`.

        Of a `proxmargin.Dataset` an iterator of arrays, one a chunk.
        """
        if is_beyond_memory(X):
            check_is_fitted(self)
            return beyond_memory.predictions(self, X, offset)
        return self._labels_of(self.decision_function(X, **offset_argument(offset)))

    def _labels_of(self, scores: Array) -> NDArray[Any]:
        """The class with the largest score."""
        codes = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return np.asarray(self.classes_[codes])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        """The accuracy of `predict`, weighted by ``sample_weight``."""
        from sklearn.metrics import accuracy_score  # imported late: it loads plotting code

        if is_beyond_memory(X):
            check_is_fitted(self)
            return beyond_memory.accuracy(self, X, y, sample_weight, offset)
        weights = by_sample("sample_weight", sample_weight, X)
        predicted = self.predict(X, **offset_argument(offset))
        return float(accuracy_score(y, predicted, sample_weight=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- names of the features --------------------------------------------------------------

    def _in_order(self) -> dict[str, Any]:
        """The parameters that are given by feature names, as arrays in the order of the fit."""
        return {}

    def _without_names(self) -> dict[str, Any]:
        """Make this a classifier of arrays, whose features have no names, after `validated`.

        Returns the attributes that make it one of the data frame again.
        """
        ordered = self._in_order()
        names = [*ordered, *(each for each in NAMES if hasattr(self, each))]
        kept = {name: self.__dict__.pop(name) for name in names}
        self.__dict__.update(ordered)
        return kept

    # -- assembling the problem -------------------------------------------------------------

    def _assemble(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> Assembly:
        """Validate parameters and data, and turn them into problems."""
        return self._assembled(*self._checked(X, y, sample_weight, offset))

    def _checked(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Targets]:
        """Validated parameters and data."""
        self._check_parameters()
        self._check_model()
        sample_weight = by_sample("sample_weight", sample_weight, X)
        offset = by_sample("offset", offset, X)
        in_passes = is_beyond_memory(X)
        if in_passes:
            self._check_passes()
            X, y, sample_weight = opened(self, X, y, sample_weight)
        else:
            X, y = validated(self, X, y)
        targets = Targets.encode(y, validated_weights(sample_weight, X), self.class_weight)
        targets = targets.mapped if in_passes else targets
        return X, self._with_offset(targets, offset, X)

    def _with_offset(self, targets: Targets, offset: Any, X: Any) -> Targets:
        """The targets of a fit with this offset, which predictions are reminded of."""
        self.__dict__.pop("largest_offset_", None)
        offset = self._checked_offset(offset, X, targets.classes)
        if offset is not None and offset.any():
            self.largest_offset_ = float(np.abs(offset).max())
        return targets if offset is None else replace(targets, offset=offset)

    def _check_passes(self) -> None:
        """Raise ValueError if the model cannot be fitted in passes over blocks of rows."""
        if self._in_memory:
            raise ValueError(
                f"{type(self).__name__} cannot be fitted to data in blocks of rows: "
                f"{self._in_memory}"
            )

    def _checked_offset(self, offset: Any, X: Any, classes: NDArray[Any]) -> Array | None:
        """The validated offset; None stays None. Raises if the model takes no offset."""
        if offset is None:
            return None
        if self._without_offset:
            raise ValueError(f"{type(self).__name__} takes no offset: {self._without_offset}")
        if classes.size > 2:
            raise ValueError(
                f"offset is one number a sample, and needs two classes: got {classes.size}, with a "
                "score each"
            )
        return validated_offset(offset, X)

    def _predicting_offset(self, offset: Any, X: Any, classes: NDArray[Any]) -> Array | None:
        """`_checked_offset` of predictions; warns of none where the fit had one."""
        if offset is None:
            self._warn_without_offset()
        return self._checked_offset(offset, X, classes)

    def _warn_without_offset(self) -> None:
        largest = getattr(self, "largest_offset_", None)
        if largest is not None:
            warnings.warn(
                "this model was fitted with an offset, the largest of size "
                f"{largest:.3g}, and its scores are computed without one: give the offset of these "
                "samples, or offset=0 if none is meant",
                UserWarning,
                stacklevel=users_level(),
            )

    def _assembled(self, X: Any, targets: Targets, context: FitContext | None = None) -> Assembly:
        X, targets, numbers = self._with_weight(X, targets)
        design, centre, scale = self._design(as_design(X), targets)
        return Assembly(targets, self._problems(targets, design, context), centre, scale, numbers)

    def _with_weight(self, X: Any, targets: Targets) -> tuple[Any, Targets, Index]:
        """The samples with positive weight, and their indices.

        Others do not matter to losses, but would to bounds on entries, rounding and step lengths.
        """
        live = np.flatnonzero(targets.weights)
        live = beside(targets.weights, live)
        if live.size == targets.weights.size:
            return X, targets, live
        return self._picked(X, live), targets.picked(live), live

    def _picked(self, X: Any, index: Index) -> Any:
        """Some of the training samples: a copy, or of a design, which folds share, a view."""
        return RowView(X, index) if isinstance(X, Design) else X[index]

    def _reassembled(self, assembly: Assembly) -> Assembly:
        """The problems of the same data for other parameters of the loss and the penalty."""
        self._check_parameters()
        self._check_model()
        design = assembly.problems[0].design
        return replace(assembly, problems=self._problems(assembly.targets, design))

    def _problems(
        self, targets: Targets, design: Design, context: FitContext | None = None
    ) -> tuple[Problem, ...]:
        joint = targets.classes.size > 2 and self.multi_class == "joint"
        penalty, intercept = self._penalty(targets, design), self._intercept(joint)
        losses = self._losses(targets, design, joint, context or FitContext())
        if targets.offset is not None:
            losses = [Shifted(loss, targets.offset[:, None]) for loss in losses]
        return tuple(
            Problem(loss, with_zero_sums(penalty, loss), design, intercept) for loss in losses
        )

    def _losses_of_scores(self, scores: Array, targets: Targets, design: Design) -> Array:
        """The mean losses of many models, (n_models,), summed over the problems.

        Parameters
        ----------
        scores : (n_models, n_samples, n_rows)
            As `decision_function` returns them, but always with the last axis.
        design : Design
            The samples.
        """
        joint = targets.classes.size > 2 and self.multi_class == "joint"
        losses = self._losses(targets, design, joint, FitContext())
        parts = np.split(scores, np.cumsum([loss.n_outputs for loss in losses])[:-1], axis=2)
        pairs = zip(losses, parts, strict=True)
        return np.sum([loss.values(part) for loss, part in pairs], axis=0)

    def _check_parameters(self) -> None:
        named = self.multi_class if isinstance(self.multi_class, str) else None
        if named in ("joint", "multinomial") and not self._joint_allowed:
            raise ValueError(
                f"multi_class={named!r} is not for {type(self).__name__}, which fits "
                "each class against the rest (multi_class='ovr'): HuberizedSVC, "
                "SparseLogisticRegression and MulticlassSVC fit them together, DDAGClassifier "
                "pair by pair"
            )
        allowed = ("joint", "ovr") if self._joint_allowed else ("ovr",)
        if named in ELSEWHERE:
            raise ValueError(
                f"multi_class must be one of {', '.join(map(repr, allowed))}, got "
                f"{named!r}: {ELSEWHERE[named]}"
            )
        check_choice("multi_class", self.multi_class, allowed)
        check_flag("fit_intercept", self.fit_intercept)
        check_flag("standardize", self.standardize)
        check_flag("warm_start", self.warm_start)
        check_choice("stopping", self.stopping, ("gap", *RULES))
        check_number("tol", self.tol, low=0.0)
        check_number("max_iter", self.max_iter, low=0, integer=True, optional=True)
        check_threads(self.n_jobs)
        check_number("time_limit", self.time_limit, low=0.0, low_open=True, optional=True)
        check_verbose(self.verbose)
        callbacks = self.callbacks if isinstance(self.callbacks, list | tuple) else [None]
        if not all(callable(callback) for callback in callbacks):
            raise ValueError("callbacks must be a list or tuple of callables that take a report")
        for callback in self.callbacks:
            interval_of(callback)  # raises for one that is none
        if not isinstance(self.solver, str | Solver):
            raise ValueError(f"solver must be a name or a solver object, got {shown(self.solver)}")
        if not isinstance(self.solver_options, Mapping | None):
            raise ValueError(
                f"solver_options must be a dict or None, got {shown(self.solver_options)}"
            )
        if self.solver_options and not (isinstance(self.solver, str) and self.solver != "auto"):
            given = "an object" if isinstance(self.solver, Solver) else "'auto'"
            raise ValueError(f"solver_options need a solver asked for by name, not {given}")

    def _design(self, design: Design, targets: Targets) -> tuple[Design, Array, Array]:
        if not self.standardize:
            return design, np.zeros(design.n_features), np.ones(design.n_features)
        full = standardized(design, targets.shares)
        if self.fit_intercept:
            return full, full.centre, full.scale
        zero = np.zeros_like(full.centre)
        scale = np.where(np.isfinite(full.scale), full.scale, 1.0)
        return StandardizedDesign(design, zero, scale), zero, scale

    def _intercept(self, joint: bool) -> Penalty:
        if not self.fit_intercept:
            return Pinned()
        strength = self._intercept_strength()
        return SumToZero(ElasticNet(0.0, strength)) if joint else Ridge(strength)

    # -- solving ----------------------------------------------------------------------------

    def _fit_assembled(
        self,
        assembly: Assembly,
        starts: Sequence[Point | None] | None = None,
        context: FitContext | None = None,
    ) -> None:
        """Solve the problems and publish the model; without a context as a fit of its own."""
        context = context or FitContext(self._started())
        starts = self._starts(assembly) if starts is None else starts
        self._publish(assembly, self._solve(assembly, starts, context), context)
        interrupts.act()

    def _choice(self, problem: Problem, deadline: float = np.inf) -> Choice:
        if isinstance(self.solver, Solver):
            return Choice(self.solver, self.solver.name, "given as an object")
        if self.solver != "auto":
            solver = named_solver(self.solver, self.solver_options or {}, problem)
            return Choice(solver, self.solver, "asked for by name")
        return choose(problem, deadline)

    def _started(self) -> Stop:
        """The limits of a fit that starts now, before its parameters are checked."""
        limit = float(self.time_limit) if isinstance(self.time_limit, Real) else None
        return self._stop(limit).started(clock(), ())

    @property
    def _most_work(self) -> float:
        return TINY_WORK

    @property
    def _is_free(self) -> bool:
        """Whether no solver, iterations or time are asked for."""
        return self.solver == "auto" and self.max_iter is None and self.time_limit is None

    def _bounded(self, stop: Stop, samples: int, features: int = 0) -> Stop:
        """The limits of a fit: `_most_work` for a tiny problem, unless a solver, iterations or a
        time are asked for."""
        is_tiny = samples * (samples + features) <= TINY_ENTRIES
        if not (is_tiny and self._is_free):
            return stop
        return replace(stop, most_work=self._most_work, effort=Effort())

    def _stop(self, time_left: float | None) -> Stop:
        make = RULES.get(self.stopping) if isinstance(self.stopping, str) else None
        return Stop(self.tol, self.max_iter, time_left, make(self.tol) if make else None)

    def _solve(
        self,
        assembly: Assembly,
        starts: Sequence[Point | State | None],
        context: FitContext,
        certify: Certify = certify,
    ) -> list[Solution]:
        """The solutions of the problems (`Runs`)."""
        limits, journal = context.stop.started(clock(), ()), context.journal
        told = [context.guard.around(callback) for callback in journal.told(self.callbacks)]
        together, blocks = (1, None) if told or journal.records else at_once(assembly.problems)
        callbacks = [*told, *self._progress(len(assembly.problems), together)]
        alone = bool(callbacks) or np.isfinite(limits.most_work)  # their work is counted in turn
        threads = max(1 if alone or journal.records else self._threads(assembly), together)
        runs = Runs(
            assembly=assembly,
            context=context.within(limits),
            choose=self._choice,
            scale=self._objective_scale,
            certify=certify,
            callbacks=callbacks,
            threads=threads,
            quiet=self.n_jobs is not None or threads > 1,
            blocks=blocks,
        )
        return runs.solved(starts)

    def _threads(self, assembly: Assembly) -> int:
        """Threads that solve problems on their own; one where data are read in passes, which
        problems share, and where they share kernel values."""
        count, design = len(assembly.problems), assembly.problems[0].design
        shared = design.passes_only or design.kernel_matrix is not None
        if count == 1 or shared:
            return 1
        return min(threads_here(self.n_jobs), count)

    def _starts(self, assembly: Assembly) -> list[Point | None]:
        """With ``warm_start`` the previous solution, if it fits, or the null model if better."""
        shape = (
            sum(problem.loss.n_outputs for problem in assembly.problems),
            assembly.scale.size,
        )
        if not self.warm_start or getattr(self, "coef_", np.empty(0)).shape != shape:
            return [None] * len(assembly.problems)
        points = self._points(assembly, self.coef_, self.intercept_)
        return for_each(assembly.problems, lambda k, problem: problem.better_start(points[k]))

    def _points(self, assembly: Assembly, coef: Array, intercept: Array) -> list[Point]:
        """The points of the problems with these published coefficients and intercepts."""
        return assembly.points(coef, intercept)

    def _progress(self, count: int, together: int) -> Iterator[Callable[[Report], object]]:
        if self.verbose:
            yield Progress(label=type(self).__name__, fits=count, together=together > 1)

    # -- publishing -------------------------------------------------------------------------

    def _publish(self, assembly: Assembly, solutions: list[Solution], context: FitContext) -> None:
        self.classes_ = assembly.targets.classes
        points = [solution.point for solution in solutions]
        self.coef_, intercept = self._published(assembly, points)
        self.intercept_ = intercept if self.coef_.any() else without_rounding(intercept)
        self.__dict__.pop("feature_scale_", None)  # left by an earlier fit that standardised
        if self.standardize:
            self.feature_scale_ = assembly.scale
        self.certificate_ = certificate_of(solutions, self.classes_)
        self._note_run(solutions, context)

    def _published(
        self, assembly: Assembly, points: Sequence[Point], features: Features = ALL
    ) -> tuple[Array, Array]:
        """Coefficients and intercepts in the units of the data, as `Assembly.published`."""
        return assembly.published(points, features)

    def _weights_of_samples(self, problem: Problem, solution: Solution) -> Array | None:
        """Weights of the samples in the coefficients, (n_samples,), without a product with the
        data; None for models that publish none."""
        return None

    def _note_run(self, solutions: list[Solution], context: FitContext) -> None:
        """Set the attributes of the run; raise if interrupted, warn if ``tol`` was not met."""
        self.n_iter_ = max(self.certificate_.n_iter, 1)
        histories = [c for c in self.callbacks if isinstance(c, History)]
        if histories:
            self.history_ = histories[0]
        asked = context.guard.has_ended()
        if any(solution.status is Status.INTERRUPTED for solution in solutions) and not asked:
            raise KeyboardInterrupt(f"the fit was interrupted; so far: {self.certificate_}")
        self._warn(solutions, context)

    def _warn(self, solutions: list[Solution], context: FitContext) -> None:
        short = unmet(solutions, self.stopping != "gap")
        if short:
            count = f" in {len(short)} of {len(solutions)} class problems"
            which = count if len(solutions) > 1 else ""
            worst = max(short, key=lambda s: s.certificate.relative_gap).certificate
            warnings.warn(
                f"{type(self).__name__} stopped before its tolerance was met{which}: "
                f"{worst.stop_reason} after {worst.n_iter} iterations of {worst.solver!r}; the "
                f"objective is certified to be within a relative gap of {worst.relative_gap:.2e} "
                f"of the optimum (tol={self.tol:g}){context.hint}",
                ConvergenceWarning,
                stacklevel=users_level(),
            )
