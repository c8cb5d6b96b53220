"""Computing a path: the strongest penalty first, each solution the start of the next."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.factors import warn_if_separated
from proxmargin.models.paths.descent import Ending, Saturation, explained, solve_grid
from proxmargin.models.paths.fit_by_fit import fits_of, stacked, template_of, values_of
from proxmargin.models.paths.found import (
    Certificates,
    Found,
    published,
    unmet_of,
    warn_of_unmet,
    weights_of_samples,
)
from proxmargin.models.paths.grid import (
    Strength,
    default_grid,
    limited_by,
    strength_of,
    unfitted,
    varying_of,
)
from proxmargin.models.paths.path import Path
from proxmargin.runtime.brief import users_level, with_pages
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.types import Array

if TYPE_CHECKING:
    pass


@with_pages
def margin_path(
    estimator: MarginEstimator,
    X: Features,
    y: Labels,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    Cs: ArrayLike | None = None,
    nus: ArrayLike | None = None,
    kappas: ArrayLike | None = None,
    l2: float | None = None,
    eps: float = 1e-3,
    stop_at: float | None = None,
    max_features: int | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Path:
    """Fit the model for many strengths, from the strongest penalty, each from the last solution.

    The data are checked, standardised and turned into a problem once. With ``verbose`` of the
    estimator, paths of more than two seconds show how many strengths are done.

    Parameters
    ----------
    estimator : an estimator with ``alpha`` and ``l1_ratio``, or a linear one with ``C``, ``nu`` or
        ``kappa``
        Is not changed. Its ``tol``, ``max_iter`` and ``time_limit`` hold for every single fit.
    X, y, sample_weight, offset
        As for ``estimator.fit``.
    alphas : (n_alphas,), optional
        In any order. By default ``n_alphas`` numbers in geometric progression from `alpha_max`
        down to ``eps`` times that. For ``l1_ratio=0`` (where `alpha_max` is infinite) the
        progression starts at the `alpha_max` of ``l1_ratio=0.001``; and at 1 where no feature
        is related to the labels.
    n_alphas : int
        Of either strength.
    Cs : (n_alphas,), optional
        For estimators with ``C``, in any order. By default increasing from `critical_C` up to that
        over ``eps``; with a ridge alone from where the scores are small, up to that over
        ``eps**2``.
    nus, kappas : (n_alphas,), optional
        For `NuSVC` and `DWD`, and for `MarginFDA` and `MarginMPM`, in any order, within the range
        that leaves a margin. By default ``n_alphas`` values from the largest: of NuSVC evenly over
        `nu_range`, of DWD two decades on either side of Marron's rule, of kappa from 0.9 times
        `kappa_max` to zero; over the range that all classes have in common.
    l2 : float >= 0, optional
        For elastic nets, as in gcdnet: a ridge part that all models share, while the l1 part falls.
        ``alphas`` are then the l1 parts, by default from where all coefficients are zero, and
        ``l1_ratio`` of the estimator does not matter.
    eps : float in (0, 1]
    stop_at : float in (0, 1], optional
        Ends the path at the first strength where this fraction of the null model's loss is
        explained, or where, after five, the fraction has risen by less than 1e-5 of itself while
        the penalty became weaker by a quarter; glmnet does much the same, with 0.999. By default
        every strength is fitted.
    max_features : int, optional
        Ends the path before the first model that uses more features (those without a penalty
        count), as ``dfmax`` of glmnet.

    Returns
    -------
    Path
        Of the strengths that are complete, if the path was interrupted.

    Raises
    ------
    ValueError
        An invalid parameter or invalid data, named in the message; the first model uses more than
        ``max_features``.
    TypeError
        The estimator has no strength, a nonlinear kernel, or another strength than is given.
    KeyboardInterrupt
        Interrupted before the first strength was complete.

    Warns
    -----
    ConvergenceWarning
        Once for the whole path, with the worst gap, when a fit ended before its gap met ``tol``.
    UserWarning
        The path was interrupted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC, margin_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = margin_path(HuberizedSVC(l1_ratio=0.9, standardize=True), X, y, n_alphas=5)
    >>> path.coefs.shape, int(path.n_nonzero[0])
    ((5, 1, 30), 0)
    """
    if limited_by(estimator) is not None or l2 is not None:
        for name, limit in {"stop_at": stop_at, "max_features": max_features}.items():
            if limit is not None:
                raise ValueError(f"{name} is for paths in alpha and C, without a fixed l2")
        grids = {"alpha": alphas, "C": Cs, "nu": nus, "kappa": kappas}
        data = (X, y, sample_weight, offset)
        return _path_of_fits(estimator, data, grids, n_alphas, l2, eps)
    template = unfitted(estimator)
    strength = strength_of(template)
    given = _explicit_grid(strength, {"alpha": alphas, "C": Cs, "nu": nus, "kappa": kappas})
    assembly = template._assemble(X, y, sample_weight, offset)
    grid = default_grid(template, assembly, n_alphas, eps) if given is None else given
    order = strength.order(grid)
    progress = ProgressBar(
        f"{type(template).__name__} path: strengths", grid.size, shown=bool(template.verbose)
    )
    limits = (stop_at, max_features)
    with interrupts, progress:
        path = compute_path(template, assembly, grid[order], limits, progress.advance)
        if interrupts.pending:
            _note_interruption(path, grid)
    path = with_explained(path, assembly)
    warn_if_separated(assembly.problems)
    return _in_given_order(path, order)


def _path_of_fits(
    estimator: MarginEstimator,
    data: Sequence[object],
    grids: Mapping[str, ArrayLike | None],
    count: int,
    l2: float | None,
    eps: float,
) -> Path:
    """A path of single fits: in nu or kappa, or in l1 beside a fixed l2 (`fit_by_fit`)."""
    template = template_of(estimator, l2)
    fixed = None if l2 is None else float(l2)
    strength = varying_of(template)
    given = _explicit_grid(strength, grids)
    grid = values_of(template, data, count, fixed, eps) if given is None else given
    order = strength.order(grid)
    models, scale = fits_of(template, data, grid[order], fixed)
    coefs, intercepts = stacked(models)
    done = len(models)
    path = Path(
        strengths=grid[order][:done] + (fixed or 0.0),
        stacked=coefs,
        intercepts=intercepts,
        certificates=[model.certificate_ for model in models],
        classes=models[0].classes_,
        scale=scale,
        template=template,
        ended=(Ending.COMPLETE if done == grid.size else Ending.INTERRUPTED).value,
        l2=fixed,
        models=models,
    )
    if done < grid.size:
        _note_interruption(path, grid)
    return _in_given_order(path, order)


def _in_given_order(path: Path, order: NDArray[np.intp]) -> Path:
    """The path in the order of the caller's grid; warns of strengths that missed the tolerance."""
    short, name = unmet_of(path.certificates), type(path.template).__name__
    warn_of_unmet(f"the {name} path", path.template.tol, len(path), short)
    taken = order[: len(path)]
    return path if np.all(taken[1:] > taken[:-1]) else path._picked(np.argsort(taken))


def compute_path(
    template: MarginEstimator,
    assembly: Assembly,
    grid: Array,
    limits: tuple[float | None, int | None] = (None, None),
    notify: Callable[[int], object] = lambda count: None,
) -> Path:
    """The path over a grid from the strongest penalty; shorter if interrupted or saturated.
    ``limits``: ``stop_at`` and ``max_features``; ``notify`` is told how many strengths were done
    since its last call."""
    saturation = Saturation(template, assembly, *limits)
    quiet = template
    if template.verbose:
        quiet = copy(template)
        quiet.verbose = 0
    parts: list[Sequence[Found]] = []
    count = 0
    for found in solve_grid(quiet, assembly, grid):
        kept, ended = saturation.ending(grid[count : count + found[0].count], found)
        parts.append([each.part(0, kept) for each in found])
        count += kept
        notify(kept)
        if ended is not None:
            break
    else:
        ended = Ending.COMPLETE if count == grid.size else Ending.INTERRUPTED
    if ended is Ending.FEATURES and not count:
        raise ValueError(
            f"max_features={limits[1]}: the first model of the path has more features; start with "
            f"a stronger penalty ({strength_of(template).name}s=), or with l1_ratio > 0"
        )
    stacked, intercepts = published(template, assembly, parts)
    return Path(
        strengths=grid[:count],
        stacked=stacked,
        intercepts=intercepts,
        certificates=Certificates(parts),
        classes=assembly.targets.classes,
        scale=assembly.scale,
        template=template,
        ended=ended.value,
        weights=weights_of_samples(assembly, parts),
    )


def with_explained(path: Path, assembly: Assembly) -> Path:
    """A path of `compute_path` with the share of the loss that each model explains."""
    assert isinstance(path.certificates, Certificates)
    parts = path.certificates.parts
    share = explained(path.template, assembly, path.strengths, parts)
    return replace(path, explained_loss=share)


def _note_interruption(path: Path, grid: Array) -> None:
    if not len(path):
        raise KeyboardInterrupt(f"before the first of {grid.size} fits of a path was complete")
    lost = f"it has {len(path)} of {grid.size} strengths"
    if path.ended != Ending.INTERRUPTED.value:
        lost = "nothing is missing, as it was complete"
    warnings.warn(
        f"the path was interrupted: {lost}",
        stacklevel=users_level(),
    )


def _explicit_grid(strength: Strength, grids: Mapping[str, ArrayLike | None]) -> Array | None:
    """The strengths that the caller gave, if any; TypeError for those of another parameter."""
    foreign = [name for name, grid in grids.items() if name != strength.name and grid is not None]
    if foreign:
        raise TypeError(f"the path is one in {strength.name}: give {strength.name}s")
    values = grids[strength.name]
    return None if values is None else strength.checked(values)
