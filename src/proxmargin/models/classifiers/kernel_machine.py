"""The base of the models of Ito et al. (2017), linear or in the space of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import Tags

from proxmargin.compiled.rounding import UNIT, Enclosed
from proxmargin.data.designs import DenseDesign, Design, StandardizedDesign, as_design, moments
from proxmargin.data.designs.samples import (
    by_rows,
    compressed,
    far_columns,
    holds_objects,
    is_sparse,
    shifted,
)
from proxmargin.data.inputs.kinds import Features
from proxmargin.data.inputs.parameters import check_number, check_strength
from proxmargin.data.inputs.targets import Targets
from proxmargin.data.kernels import Custom, Kernel, Precomputed, named_kernel
from proxmargin.data.kernels.checks import check_definite, check_digits, check_size
from proxmargin.data.kernels.matrices import ComputedKernel, kernel_matrix
from proxmargin.data.kernels.matrix import KernelDesign, KernelMatrix, kernel_matrix_of
from proxmargin.functions.losses import Loss
from proxmargin.models.classifiers.kernel_rounds import Rounds, model_of, without_rounding
from proxmargin.models.fitting.assembly import Assembly, each_class, opposed
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.fitting import FitContext, for_each
from proxmargin.models.fitting.parameters import KernelParameters, ThreadParameters
from proxmargin.optimality.certificates.certificate import Gap, combined
from proxmargin.optimality.certificates.representer import Representer, certify_represented
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.threads import affordable
from proxmargin.runtime.types import Array, Index, Values
from proxmargin.solvers.choice.names import better_with_all_work
from proxmargin.solvers.dual.decomposition import BlockDecomposition
from proxmargin.solvers.loop.minimize import require_suitable
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import TINY_WORK, Stop, UnsuitableSolverError
from proxmargin.solvers.ridge.newton import RidgeNewton

MAX_FACTORED_SAMPLES = 2000  # up to which a stalled decomposition is followed by an interior point
# fitted attributes that only nonlinear kernels have
OF_A_KERNEL = ("support_vectors_", "gamma_", "feature_scale_", "feature_centre_")
DECOMPOSITION = BlockDecomposition()
Named = Callable[[], str]
PREDICTION_BLOCK = 1 << 22  # kernel values computed at a time for predictions: 32 MB


class Finish(NamedTuple):
    """The factor on the coefficients and the intercept, (1,), with which a model is published."""

    factor: float
    intercept: Array


class KernelData(NamedTuple):
    """Training samples and their kernel matrix, which models of several strengths share."""

    X: Any  # in the units of the kernel
    targets: Targets
    numbers: Index  # (n_samples,), those of the samples among all that were given
    kernel: Kernel
    matrix: KernelMatrix


class KernelMachine(ThreadParameters, MarginEstimator, KernelParameters):
    """Base of the models that use the samples through inner products only.

    Subclasses define losses and penalty, and may rescale the model and choose its intercept
    (`_finish`).

    If the dual of the loss is sparse (`_most_decomposed`), block coordinate descent on the dual
    works with the exact kernel. For other losses a nonlinear kernel is factored, ``K ~ G G'`` by
    incomplete Cholesky with random pivots, and the linear model on G is solved; its dual gives the
    weights of samples, which are certified for the exact kernel. If that certificate does not meet
    ``tol``, the factor is refined, or Newton's method goes on with the exact kernel
    (`proxmargin.models.classifiers.kernel_rounds`).
    """

    _joint_allowed = False
    # number of samples up to which a kernel is decomposed: infinite for losses without curvature,
    # for which most dual coordinates end at a bound and low-rank factors converge slowly
    _most_decomposed: ClassVar[float] = 0

    kernel: Any
    gamma: Any
    degree: int
    coef0: float

    def _check_passes(self) -> None:
        if not self._is_linear:
            raise ValueError(
                f"{type(self).__name__} with kernel={self.kernel!r} cannot be fitted to data in "
                "blocks of rows: it needs the kernel of all pairs of samples"
            )
        super()._check_passes()

    def _fit_recorded(self, X: Any, targets: Targets, context: FitContext) -> None:
        """Fit a linear kernel on the features, any other in its feature space."""
        if self._is_linear:
            super()._fit_recorded(X, targets, context)
            return
        self._fit_kernel(self._kernel_data(X, targets, context.stop), context)
        if interrupts.pending:
            raise KeyboardInterrupt

    def _scores_of(self, X: Any) -> Array:
        if hasattr(self, "coef_"):
            return super()._scores_of(X)
        return self._kernel_scores(by_rows(X), self.support_vectors_)

    def _kernel_scores(self, X: Values, support: Any) -> Array:
        """Scores of samples by a nonlinear kernel, (n_samples, n_outputs), block by block."""
        scores = np.tile(self.intercept_, (X.shape[0], 1))
        if not self.support_.size:  # nothing that a function could compare with
            return scores
        kernel = self._standardized_kernel(self._named_kernel(None), support)
        matrix = ComputedKernel(kernel, support)
        sparsely = is_sparse(support)
        if sparsely:  # columns full in training may not be in the support: check the digits again
            check_digits(matrix)
        fills = self.standardize and is_sparse(X) and not sparsely
        width = max(self.support_.size, X.shape[1] if fills else 1)
        step = max(1, PREDICTION_BLOCK // width)
        for start in range(0, X.shape[0], step):
            rows = slice(start, min(start + step, X.shape[0]))
            samples = self._prepared(X[rows], dense=not sparsely)
            scores[rows] += kernel.product(samples, matrix.others, self.dual_coef_.T)
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    # -- what a model says of itself -------------------------------------------------------

    def _finish(self, problem: Problem, scores: Callable[[], Enclosed], intercept: Array) -> Finish:
        """Factor and intercept of the published model, from the scores of the training samples.
        ``scores`` computes them, (n_samples, 1), with the certified intercept and their
        rounding."""
        return Finish(1.0, intercept)

    def _is_futile(self, problem: Problem, gap: Gap) -> bool:
        """Whether a stalled problem is given up, as other parameters take the place of its own."""
        return False

    def _check_gap(
        self, problem: Problem, gap: Gap, status: Status, context: FitContext, classes: Named
    ) -> str | None:
        """The warning for an optimum without a margin, or None; ``classes`` names them."""
        return None

    def _with_remarks(
        self,
        context: FitContext,
        targets: Targets,
        problems: Sequence[Problem],
        solutions: Sequence[Solution],
        gaps: Sequence[Gap],
    ) -> FitContext:
        """Adds the warnings of `_check_gap`, unless an interruption ended the fit early."""
        if any(one.status is Status.INTERRUPTED for one in solutions):
            return context
        found = zip(problems, gaps, solutions, each_class(targets), strict=True)
        told = [
            self._check_gap(problem, gap, one.status, context, partial(opposed, targets, k))
            for problem, gap, one, k in found
        ]
        return replace(context, remarks=tuple(filter(None, told))) if any(told) else context

    def _shortfall(self, short: list[Solution], problems: int, context: FitContext) -> str:
        """Of models without a margin; of unmet tolerances only if there is none."""
        remarks = context.remarks
        if not remarks:
            return super()._shortfall(short, problems, context)
        others = f" (so do {len(remarks)} of {problems} class problems)"
        return (
            f"{type(self).__name__}: {remarks[0]}; every sample gets the same score"
            f"{others if len(remarks) > 1 else ''}"
        )

    def _note_chosen(self, problems: Sequence[Problem]) -> None:
        """Publish parameters that were chosen from the data."""

    # -- checking ---------------------------------------------------------------------------

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    @property
    def _takes_objects(self) -> bool:
        """Whether the kernel is a function, to which samples may be any objects."""
        is_function = callable(self.kernel) and not isinstance(self.kernel, Kernel)
        return is_function or isinstance(self.kernel, Custom)

    @property
    def _is_precomputed(self) -> bool:
        by_name = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return by_name or isinstance(self.kernel, Precomputed)

    def _check_model(self) -> None:
        check_number("cache_size", self.cache_size, low=0.0)
        check_number("rank", self.rank, low=1, integer=True, optional=True)
        check_number("degree", self.degree, low=1, integer=True)
        check_strength("coef0", self.coef0, low=-np.inf)
        # the gamma of 'scale' follows the units of the data, and may have any magnitude
        if isinstance(self.gamma, Real) and float(self.gamma) > 0:
            check_strength("gamma", self.gamma, low=0.0, low_open=True)
        if self.standardize and self._is_precomputed:
            raise ValueError("standardize must be False for a precomputed kernel")

    def _named_kernel(self, design: Design | None, weights: Array | None = None) -> Kernel:
        """The kernel for the data ``design``; without data, the kernel with the fitted gamma."""
        known = design is None and self.gamma_ is not None
        gamma: Any = self.gamma_ if known else self.gamma
        return named_kernel(
            self.kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            X=design,
            weights=weights,
        )

    # -- linear -----------------------------------------------------------------------------

    def _publish(self, assembly: Assembly, solutions: list[Solution], context: FitContext) -> None:
        gaps = [one.gap for one in solutions]
        context = self._with_remarks(context, assembly.targets, assembly.problems, solutions, gaps)

        def finish(k: int, problem: Problem) -> tuple[Solution, Array]:
            solution = self._finished(problem, solutions[k])
            return solution, _weights(problem, solution)

        done = for_each(assembly.problems, finish)
        finished, duals = [solution for solution, _ in done], [weights for _, weights in done]
        for attribute in OF_A_KERNEL:
            self.__dict__.pop(attribute, None)  # left by an earlier fit with another kernel
        self._publish_support(np.array(duals), assembly.numbers)
        self._note_chosen(assembly.problems)
        super()._publish(assembly, finished, context)

    def _weights_of_samples(self, problem: Problem, solution: Solution) -> Array:
        return _of_supports(problem, solution, 1.0 / problem.penalty.l2)

    def _finished(self, problem: Problem, solution: Solution) -> Solution:
        point = solution.point

        def scores() -> Enclosed:
            found = problem.design.scores(point.coef) + point.intercept
            return problem.design.enclosed(point.coef, point.intercept, found)

        factor, intercept = self._finish(problem, scores, point.intercept)
        point = Point(factor * point.coef, factor * intercept)
        return Solution(point, solution.gap, solution.status, solution.certificate, None)

    # -- in the space of a kernel -----------------------------------------------------------

    def _kernel_data(self, X: Values, targets: Targets, stop: Stop) -> KernelData:
        """The samples with positive weight and their kernel matrix, of validated data."""
        X, targets, numbers = self._with_weight(X, targets)
        X, kernel = self._kernel_of(X, targets)
        self._check_before_kernel(X, kernel, targets, stop)
        matrix = kernel_matrix(kernel, X, cache_bytes=int(1e6 * self.cache_size))
        check_digits(matrix)
        check_size(matrix.diagonal())
        return KernelData(X, targets, numbers, kernel, matrix)

    def _fit_kernel(self, data: KernelData, context: FitContext) -> None:
        """Solve on the exact kernel by decomposition, or on low-rank factors of it."""
        X, targets, numbers, kernel, matrix = data
        lengths = matrix.diagonal()
        problems = self._problems(targets, KernelDesign(matrix), context)
        solver = _KernelSolver(self, targets, context, matrix)
        decomposes = self._decomposes(problems, context.stop)
        found = (solver.decomposed if decomposes else solver.factored)(problems)
        context = replace(context, hint=_hint_of_range(float(lengths.min()), float(lengths.max())))
        self.__dict__.pop("coef_", None)  # left by an earlier fit with a linear kernel
        solutions, models = [one for one, _ in found], [model for _, model in found]
        gaps = [model.gap for model in models]
        context = self._with_remarks(context, targets, problems, solutions, gaps)
        weights, intercepts = [], []
        for problem, model in zip(problems, models, strict=True):
            intercept = model.gap.point.intercept
            factor, intercept = self._finish(problem, partial(_enclosed, model), intercept)
            weights.append(factor * model.weights)
            intercepts.append(factor * intercept)
        self.classes_ = targets.classes
        support = self._publish_support(np.array(weights), numbers)
        self.support_vectors_ = kernel.anchors(X, support, numbers)
        self.intercept_ = np.concatenate(intercepts)
        self._note_chosen(problems)
        self.certificate_ = combined([one.certificate for one in solutions], self.classes_)
        self._note_run(solutions, context)

    def _check_before_kernel(
        self, X: Features, kernel: Kernel, targets: Targets, stop: Stop
    ) -> None:
        """Raise for what the classes or the solver do not admit, before the kernel is evaluated."""
        design = KernelDesign(ComputedKernel(kernel, by_rows(X)))  # computes nothing by itself
        penalty = self._penalty(targets, design)
        self._check_targets([targets])
        if self.solver == "auto" and stop.rule is None:
            return
        loss = self._losses_before_kernel(targets, design)[0]
        problem = Problem(loss, penalty, design, self._intercept(False))
        if self._decomposes([problem], stop):
            return
        # of a factor whose rank is not known yet, what takes neither a low nor a full one
        n = targets.codes.size
        low, full = (replace(problem, design=_nothing(n, rank)) for rank in (1, n))
        try:
            require_suitable(self._choice(low).solver, low, stop)
        except UnsuitableSolverError:
            require_suitable(self._choice(full).solver, full, stop)

    def _losses_before_kernel(self, targets: Targets, design: Design) -> Sequence[Loss]:
        """The losses, with any value for parameters that depend on the kernel."""
        return self._losses(targets, design, False, FitContext())

    def _decomposes(self, problems: Sequence[Problem], stop: Stop) -> bool:
        """Whether to solve with the exact kernel by decomposition. Where its starts alone would
        take the whole time, factors get further (a nu-SVM starts from weights that are not zero,
        whose scores are a product with the kernel for each class)."""
        fits = problems[0].design.n_samples <= self._most_decomposed
        chosen = fits and self.solver == "auto" and self.rank is None
        asked = self.solver == "decomposition" or isinstance(self.solver, BlockDecomposition)
        if not (chosen or asked):
            return False
        solver = self.solver if isinstance(self.solver, BlockDecomposition) else DECOMPOSITION
        if any(map(solver.objection, problems)):
            return False
        if asked or stop.deadline == np.inf:
            return True
        return affordable(sum(map(solver.start_work, problems)), stop.deadline, share=1.0)

    def _fits_exactly(self, problems: Sequence[Problem]) -> bool:
        """Whether a solver of the exact kernel may take the place of large factors."""
        if self.solver != "auto" or self.rank is not None:
            return False
        matrix = kernel_matrix_of(problems[0].design)
        exact = (DECOMPOSITION, RidgeNewton())
        fits = any(not any(map(solver.objection, problems)) for solver in exact)
        return fits and matrix is not None and matrix.is_definite

    def _picked(self, X: Values, index: Index) -> Values:
        """Some of the training samples; of a precomputed kernel the same columns too."""
        return X[np.ix_(index, index)] if self._is_precomputed else super()._picked(X, index)

    def _kernel_of(self, X: Values, targets: Targets) -> tuple[Values, Kernel]:
        """The training samples in the units of the kernel, and the kernel with its gamma."""
        self.gamma_ = None
        design = None if holds_objects(X) else self._scaled_design(as_design(X), targets)
        kernel = self._named_kernel(design, targets.weights)
        self.gamma_ = getattr(kernel, "gamma", None)
        X = self._prepared(X, dense=not is_sparse(X))
        return X, self._standardized_kernel(kernel, X)

    def _publish_support(self, weights: Array, numbers: Index) -> Index:
        """Publish the nonzero weights of the samples ``numbers``; returns their positions."""
        support = np.flatnonzero(weights.any(axis=0))
        self.support_, self.dual_coef_ = numbers[support], weights[:, support]
        return support

    def _scaled_design(self, design: Design, targets: Targets) -> Design:
        """The samples in the units of the kernel; publishes centre and scale of the features."""
        if not self.standardize:
            return design
        self.feature_centre_, self.feature_scale_ = moments(design, targets.shares)
        return StandardizedDesign(design, self.feature_centre_, self.feature_scale_)

    def _prepared(self, X: Any, *, dense: bool) -> Any:
        """Samples in the units of the kernel: dense, centred and scaled. Sparse training samples,
        and all samples compared with them, are centred in `far_columns` only, before they are
        scaled; the kernel subtracts the rest (`_standardized_kernel`), so that they stay sparse."""
        if not self.standardize:
            return X
        point = self.feature_centre_ if dense else self.feature_centre_ - self._rest
        if not is_sparse(X):
            return (X - point) / self.feature_scale_
        if dense:
            return (X.toarray() - point) / self.feature_scale_
        scaled = shifted(compressed(X), point).tocsr().astype(np.float64)
        scaled.data /= self.feature_scale_[scaled.indices]
        return scaled

    def _standardized_kernel(self, kernel: Kernel, X: Features) -> Kernel:
        """The kernel of samples that are `_prepared`: of sparse ones it subtracts the rest."""
        if not self.standardize:
            return kernel
        return kernel.standardized(self._rest / self.feature_scale_ if is_sparse(X) else None)

    @property
    def _rest(self) -> Array:
        """The centre of sparse samples in the columns where it is not subtracted, (n_features,)."""
        far = far_columns(self.feature_centre_, self.feature_scale_)
        return np.where(far, 0.0, self.feature_centre_)


@dataclass(frozen=True, eq=False)
class _KernelSolver:
    """Solves the problems of one fit: on the exact kernel, or on low-rank factors of it."""

    model: KernelMachine
    targets: Targets
    context: FitContext
    matrix: KernelMatrix

    def decomposed(self, problems: Sequence[Problem]) -> list[tuple[Solution, Representer]]:
        """By decomposition; few samples whose gap is still too large then by a factor."""
        if not self.matrix.is_definite:
            check_definite(self.matrix, np.random.default_rng(0))
        solutions = self.exactly(problems, [None] * len(problems), self.context.stop)
        found = [(solution, model_of(solution)) for solution in solutions]
        if self.model.solver != "auto" or self.matrix.n_samples > MAX_FACTORED_SAMPLES:
            return found
        for k, (problem, (solution, kernel_model)) in enumerate(zip(problems, found, strict=True)):
            stuck = solution.status in (Status.STALLED, Status.ROUNDED)
            stuck = stuck and not solution.certificate.converged
            if stuck and not self.model._is_futile(problem, kernel_model.gap):
                further, other = self.factored([problem])[0]
                better = other if other.gap.gap <= kernel_model.gap.gap else kernel_model
                found[k] = better_with_all_work(solution, further), better
        return found

    def factored(self, problems: Sequence[Problem]) -> list[tuple[Solution, Representer]]:
        """On factors, that are refined until the certificate for the exact kernel is met."""
        exactly = self.exactly if self.model._fits_exactly(problems) else None
        scale, stop, rank = self.model._objective_scale, self.context.stop, self.model.rank
        rounds = Rounds(self.matrix, problems, self.on_factor, scale, stop, rank, exactly)
        return [(one.solution, one.model) for one in rounds.run()]

    def on_factor(
        self, problems: Sequence[Problem], starts: Sequence[Point | None], stop: Stop
    ) -> list[Solution]:
        if self.model._is_free and problems[0].loss.is_homogeneous:  # a margin may be rounding
            stop = replace(stop, most_further_work=TINY_WORK)
        parts = _assembly(self.targets, problems)
        return self.model._solve(parts, starts, replace(self.context, stop=stop))

    def exactly(
        self, problems: Sequence[Problem], starts: Sequence[Point | None], stop: Stop
    ) -> list[Solution]:
        parts, context = _assembly(self.targets, problems), replace(self.context, stop=stop)
        return self.model._solve(parts, starts, context, certify_represented)


def _nothing(n_samples: int, n_features: int) -> Design:
    """A design of zeros, which take no memory."""
    return DenseDesign(np.broadcast_to(0.0, (n_samples, n_features)))


def _weights(problem: Problem, solution: Solution) -> Array:
    """Weights of samples whose combination is collinear with the coefficients, (n_samples,)."""
    if problem.has_ridge_alone and not problem.loss.is_homogeneous:
        return _of_supports(problem, solution, 1.0 / problem.penalty.l2)
    pulled = problem.design.adjoint(-solution.gap.dual_point)
    size = float(np.linalg.norm(pulled))
    length = float(np.linalg.norm(solution.point.coef)) / size if size > 0 else 0.0
    return _of_supports(problem, solution, length)


def _enclosed(model: Representer) -> Enclosed:
    """The scores of the training samples."""
    sizes = np.abs(model.scores)
    return Enclosed(model.scores, model.gap.score_error, sizes)


def _of_supports(problem: Problem, solution: Solution, length: float) -> Array:
    """``-length`` times the dual point, with entries set to zero that are zero up to rounding."""
    weights: Array = -length * without_rounding(problem, solution.gap.dual_point)[:, 0]
    return weights


def per_class(values: Sequence[float]) -> float | Array:
    """The value itself for a binary model, else an array (n_classes,)."""
    return values[0] if len(values) == 1 else np.array(values)


def _hint_of_range(low: float, high: float) -> str:
    """The range of ``k(x, x)``, if sums of kernel values lose the small ones to rounding."""
    if low >= UNIT * high:
        return ""
    return (
        f"; the kernel's values k(x, x) range from {low:.3g} to {high:.3g}, which is more than "
        "double precision tells apart: take other scales of the features, a lower degree or "
        "another kernel"
    )


def _assembly(targets: Targets, problems: Sequence[Problem]) -> Assembly:
    """An assembly of problems whose features are not standardised."""
    count, numbers = problems[0].design.n_features, np.arange(targets.codes.size)
    return Assembly(targets, tuple(problems), np.zeros(count), np.ones(count), numbers)
