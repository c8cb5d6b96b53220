"""The base of the scikit-learn estimators: data and parameters to problems, and back."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from proxmargin.data.designs import Design, RowView, StandardizedDesign, as_design, standardized
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.beyond_memory import is_beyond_memory, opened
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.parameters import refuse_unknown
from proxmargin.data.inputs.targets import Targets
from proxmargin.data.inputs.validation import validated, validated_weights
from proxmargin.functions.losses import Loss, MarginLoss, Shifted
from proxmargin.functions.penalties import ElasticNet, Penalty, Pinned, Ridge, SumToZero
from proxmargin.models.fitting.assembly import Assembly, margin_sums, with_zero_sums
from proxmargin.models.fitting.fitting import FitContext, SolvesProblems
from proxmargin.models.fitting.notebook import CertifiedEstimator
from proxmargin.models.fitting.parameters import ChecksParameters
from proxmargin.models.fitting.predicting import PredictsByScores
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.brief import with_pages
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.memory import beside
from proxmargin.runtime.types import Array, Index, Values
from proxmargin.solvers.resuming.journal import Identity, journal_of
from proxmargin.solvers.shared.batched_labels import Axes, FitsLabelings


class MarginEstimator(PredictsByScores, SolvesProblems, ChecksParameters, CertifiedEstimator):
    """Base of the linear margin classifiers. Subclasses define the loss and the penalty."""

    # a checkpoint belongs to one fit, so that metadata routing does not pass it on (UNUSED, which
    # says so too, is an error in subclasses whose fit has no such argument)
    __metadata_request__fit: ClassVar[Any] = {"resume_from": False}

    def __new__(cls, *args: object, **parameters: object) -> Self:
        refuse_unknown(cls, parameters)
        return super().__new__(cls)

    @abstractmethod
    def _check_model(self) -> None:
        """Raise ValueError for an invalid parameter of the model itself."""

    def _check_targets(self, fits: Iterable[Targets]) -> None:
        """Raise ValueError for a parameter that the classes of a fit do not admit, before any
        work; ``fits``: the targets of each of several fits."""

    def _losses(
        self, targets: Targets, design: Design, joint: bool, context: FitContext
    ) -> Sequence[Loss]:
        """The loss of each problem: one for all classes together, or one a class (or pair)."""
        return margin_sums(self._margin_loss(), targets, joint)

    def _margin_loss(self) -> MarginLoss:
        """The loss of one margin, of a model whose losses are sums of it."""
        raise NotImplementedError

    @abstractmethod
    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        """The penalty of the coefficients of one problem."""

    intercept_ridge = 0.0  # of models without this parameter
    # whether many fits to few samples are faster in their principal axes than in the features
    _is_faster_in_axes: ClassVar[bool] = False

    def _of_labelings(self, axes: Axes, signs: Array) -> FitsLabelings | None:
        """What fits this model to many labelings of the same samples at once, one a column of
        ``signs``; None if nothing does."""
        return None

    @with_pages
    def fit(
        self,
        X: Features,
        y: Labels | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
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
            (with a nonlinear kernel: up to rounding; after a limit, whose last step was a part of
            one: within the tolerance). Model, data, weights, offsets and parameters
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
            stop = self._started()
            data, targets = self._checked(X, y, sample_weight, offset)
            if journal.records:
                journal.begin(Identity.of(self, data, targets.classes, *targets.arrays))
            self.__dict__.pop("calibrator_", None)  # of an earlier fit
            context = FitContext(self._bounded(stop, *data.shape[:2]), journal)
            self._fit_recorded(data, targets, context)
        return self

    def _fit_recorded(self, X: Any, targets: Targets, context: FitContext) -> None:
        """Fit the model within limits, reusing and recording minimisations in the journal."""
        assembly = self._assembled(X, targets, context)
        solutions = self._solve(assembly, self._starts(assembly), context)
        self._publish(assembly, solutions, context)
        if interrupts.pending:
            raise KeyboardInterrupt

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- assembling the problem -------------------------------------------------------------

    def _assemble(
        self, X: Any, y: Labels, sample_weight: ArrayLike | None, offset: ArrayLike | None = None
    ) -> Assembly:
        """Validate parameters and data, and turn them into problems."""
        return self._assembled(*self._checked(X, y, sample_weight, offset))

    def _checked(
        self, X: Any, y: Labels | None, sample_weight: ArrayLike | None, offset: ArrayLike | None
    ) -> tuple[Any, Targets]:
        """Validated parameters and data."""
        self._check_parameters()
        self._check_model()
        if sample_weight is not None:
            sample_weight = by_sample("sample_weight", sample_weight, X)
        if offset is not None:
            offset = by_sample("offset", offset, X)
        given = X
        in_passes = not isinstance(X, np.ndarray) and is_beyond_memory(X)
        if in_passes:
            self._check_passes()
            X, y, sample_weight = opened(self, X, y, sample_weight)
        else:
            X, y = validated(self, X, y)
        targets = self._encoded(y, validated_weights(sample_weight, X), given)
        targets = targets.mapped if in_passes else targets
        self.__dict__.pop("largest_offset_", None)
        return X, targets if offset is None else self._with_offset(targets, offset, X)

    def _encoded(self, y: Values, weights: Array | None, given: object = None) -> Targets:
        """The targets of validated labels and weights. ``given``: the samples as they were given,
        whose index parameters of the samples are put into the order of."""
        return Targets.encode(y, weights, self.class_weight)

    def _assembled(self, X: Any, targets: Targets, context: FitContext | None = None) -> Assembly:
        X, targets, numbers = self._with_weight(X, targets)
        design, centre, scale = self._design(as_design(X), targets)
        return Assembly(targets, self._problems(targets, design, context), centre, scale, numbers)

    def _with_weight(self, X: Values, targets: Targets) -> tuple[Values, Targets, Index]:
        """The samples with positive weight, and their indices.

        Others do not matter to losses, but would to bounds on entries, rounding and step lengths.
        """
        live = beside(targets.weights, np.flatnonzero(targets.weights))
        if live.size == targets.weights.size:
            return X, targets, live
        return self._picked(X, live), targets.picked(live), live

    def _picked(self, X: Values, index: Index) -> Any:
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
        if joint:
            penalty = with_zero_sums(penalty, losses[0])
        if targets.offset is not None:
            losses = [Shifted(loss, targets.offset[:, None]) for loss in losses]
        problem = partial(Problem, penalty=penalty, design=design, intercept=intercept)
        return tuple(map(problem, losses))

    def _losses_of_scores(self, scores: Array, targets: Targets, design: Design) -> Array:
        """The mean losses of many models, (n_models,), summed over the problems. ``scores``:
        (n_models, n_samples, n_rows), as `decision_function` returns them, but always with the last
        axis."""
        joint = targets.classes.size > 2 and self.multi_class == "joint"
        losses = self._losses(targets, design, joint, FitContext())
        parts = np.split(scores, np.cumsum([loss.n_outputs for loss in losses])[:-1], axis=2)
        pairs = zip(losses, parts, strict=True)
        return np.sum([loss.values(part) for loss, part in pairs], axis=0)

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
        strength = float(self.intercept_ridge)
        return SumToZero(ElasticNet(0.0, strength)) if joint else Ridge(strength)
