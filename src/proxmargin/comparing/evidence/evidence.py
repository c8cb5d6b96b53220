"""What scores over the same splits say about models: intervals, differences, a choice.

Splits share samples. The standard error of a mean over them is that of Nadeau and Bengio (2003):
the plain ``s / sqrt(J)`` is two thirds of it over five folds, and a quarter over ten times five.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.comparing.evidence.basis import MetricRange
from proxmargin.comparing.evidence.pairs import ModelPairs, student
from proxmargin.stats.scores import (
    CONFIDENCE,
    ROPE,
    SAME,
    Floats,
    check_flag,
    check_fraction,
    read_numbers,
)

__all__ = ["COLUMNS", "LIKELY", "Evidence"]

LIKELY = 0.9  # posterior probability of being worse by more than ``rope``, not to be recommended
COLUMNS = (
    "mean",
    "sd",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "p",
    "p_holm",
    "p_equal",
    "p_worse",
)
# of columns, where the differences of pairs have another name
PARTS = {"difference_low": "low", "difference_high": "high"}


@dataclass(frozen=True)
class Evidence:
    """Models judged by one metric. Arrays have an entry a model, NaN for one that is left out.

    Attributes
    ----------
    models : tuple of str
        As given.
    mean, sd : (n_models,)
        Over the splits.
    low, high : (n_models,)
        Interval of the expected score of a model fitted to as many samples as a split trains on.
    difference, difference_low, difference_high : (n_models,)
        Mean score minus that of the best: 0 for the best itself. The interval is that of the pair
        by itself, not adjusted for the best being picked by the same scores: ``p_holm`` is.
    p : (n_models,)
        Two-sided, of the difference from the best; 1 for the best itself.
    p_holm : (n_models,)
        Adjusted by Holm's procedure for all pairs of models: the best is picked by the same
        scores, and with an adjustment for the comparisons with it alone, chance would too often
        make one of equal models better than another.
    p_equal, p_worse : (n_models,)
        Posterior probability that the difference is no larger than ``rope``, and that the model is
        worse than the best by more.
    pairs : Pairs or None
        All pairs of models that are not left out.
    best : str or None
        The model with the best mean; the simplest of those with equal means. Its own mean is
        optimistic a little, because it is the best of several. None if all are left out.
    equivalent : tuple of str
        The models that are not distinguishable from the best at level ``1 - confidence``, the best
        first. Not distinguishable is not equal: see ``p_equal``.
    recommended : str or None
        The simplest of those in ``equivalent`` that are not almost certainly worse than the best
        by more than ``rope``: with few splits a model can be much worse and not be distinguishable.
    left_out : tuple of str
        Models without a score on some split that is used.
    n_splits : int
        Number of splits that are used.
    notes : tuple of str
        What a reader must know: what is left out, what cannot be told.
    confidence, rope : float
    """

    models: tuple[str, ...]
    mean: Floats
    sd: Floats
    low: Floats
    high: Floats
    difference: Floats
    difference_low: Floats
    difference_high: Floats
    p: Floats
    p_holm: Floats
    p_equal: Floats
    p_worse: Floats
    pairs: ModelPairs | None
    best: str | None
    equivalent: tuple[str, ...]
    recommended: str | None
    left_out: tuple[str, ...]
    n_splits: int
    notes: tuple[str, ...]
    confidence: float
    rope: float

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        models: Sequence[str],
        *,
        test_ratio: float,
        repeats: int = 1,
        larger_is_better: bool = True,
        simplicity: ArrayLike | None = None,
        basis: MetricRange | None = None,
        confidence: float = CONFIDENCE,
        rope: float = ROPE,
    ) -> Evidence:
        """Judge models by scores over splits.

        Parameters
        ----------
        scores : (n_splits, n_models)
            All folds of the first repetition, then those of the second; NaN where not finished.
            A model with an infinite score, as a log-loss may be, is left out.
        models : (n_models,) names
        test_ratio : float
            Number of test samples by number of training samples of a split: ``1 / (k - 1)`` for
            (repeated) k folds, 0.25 for five.
        repeats : int
            Number of repetitions.
        larger_is_better : bool
        simplicity : (n_models,) or (n_models, n_keys), optional
            Smaller is simpler; keys are compared in order, NaN is last. Without it the recommended
            model is the best.
        basis : Basis, optional
            The metric's range and rows (`basis_of`). Without it intervals are not clipped, and
            have no width where all scores are equal.
        confidence : float
            Of the intervals; the level of the tests is ``1 - confidence``.
        rope : float
            Differences up to this size do not matter in practice, in units of the score.

        Raises
        ------
        ValueError
            Shapes that do not belong together; repeated names; numbers out of range.
        """
        names = _checked_names(models)
        values = _checked_scores(scores, names, repeats)
        keys = _checked_simplicity(simplicity, len(names))
        judge = _Judge(
            ratio=_checked_number("test_ratio", test_ratio, open_low=True),
            folds=min(len(values) // repeats, _disjoint_tests(test_ratio)),
            sign=1.0 if check_flag("larger_is_better", larger_is_better) else -1.0,
            basis=MetricRange() if basis is None else basis,
            confidence=check_fraction("confidence", confidence),
            rope=_checked_number("rope", rope),
        )
        return judge(names, values, keys)

    def row(self, model: str) -> dict[str, Any]:
        """The numbers of one model, NaN where there are none, and whether it is equivalent."""
        index = self.models.index(model)
        numbers = {name: float(getattr(self, name)[index]) for name in COLUMNS}
        return {**numbers, "n": self.n_splits, "equivalent": model in self.equivalent}

    def to_frame(self) -> Any:
        """A row for each model, in the order given."""
        import pandas as pd

        rows = [self.row(model) for model in self.models]
        return pd.DataFrame(rows, index=pd.Index(self.models, name="model"))


@dataclass(frozen=True)
class _Judge:
    """How scores are judged; ``sign`` is 1 where larger ones are better and -1 otherwise."""

    ratio: float
    folds: int
    sign: float
    basis: MetricRange
    confidence: float
    rope: float

    def __call__(self, names: tuple[str, ...], values: Floats, keys: Floats) -> Evidence:
        splits, kept = _complete(values)
        picked = values[np.ix_(splits, kept)]
        places = np.flatnonzero(kept)
        columns = {name: np.full(len(names), np.nan) for name in COLUMNS}
        best, chosen, pairs = None, [], None
        if picked.size:
            best = self._best(picked, keys[kept])
            pairs = self._pairs(picked, tuple(names[place] for place in places))
            for name, column in {**self._means(picked), **_against(pairs, best)}.items():
                columns[name][kept] = column
            chosen = self._equivalent(picked, best, pairs.p_holm[:, best])
        worse = columns["p_worse"][places] > LIKELY
        close = [each for each in chosen if not worse[each]]
        simplest = min(close, key=lambda each: tuple(keys[places[each]]), default=None)
        return Evidence(
            models=names,
            **columns,
            pairs=pairs,
            best=None if best is None else names[places[best]],
            equivalent=tuple(names[places[each]] for each in chosen),
            recommended=None if simplest is None else names[places[simplest]],
            left_out=tuple(name for name, here in zip(names, kept, strict=True) if not here),
            n_splits=len(picked) if picked.size else 0,
            notes=tuple(self._notes(names, values, splits, kept)),
            confidence=self.confidence,
            rope=self.rope,
        )

    def _best(self, values: Floats, keys: Floats) -> int:
        """The best mean; of means that are equal but for rounding the simplest model."""
        means = self.sign * values.mean(axis=0)
        top = np.flatnonzero(means >= means.max() - SAME * np.abs(means).max())
        return int(min(top, key=lambda each: tuple(keys[each])))

    def _means(self, values: Floats) -> dict[str, Floats]:
        """Means with intervals: where the rows behind the scores allow less than the spread over
        the splits says, theirs."""
        found = student(values.T, self.ratio)
        low, high = found.interval(self.confidence)
        if self.basis.counted or not found.error.all():
            own = self.basis.interval(found.mean, self.confidence)
            use = self.basis.counted | (found.error == 0)
            low = np.where(use, np.fmin(low, own[0]), low)
            high = np.where(use, np.fmax(high, own[1]), high)
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full_like(found.mean, np.nan)
        ends = {"low": self.basis.clipped(low), "high": self.basis.clipped(high)}
        return {"mean": found.mean, "sd": spread, **ends}

    def _pairs(self, values: Floats, names: tuple[str, ...]) -> ModelPairs:
        return ModelPairs.of(
            values,
            names,
            test_ratio=self.ratio,
            folds=self.folds,
            sign=self.sign,
            basis=self.basis,
            confidence=self.confidence,
            rope=self.rope,
        )

    def _equivalent(self, values: Floats, best: int, adjusted: Floats) -> list[int]:
        """Models not distinguishable from the best, the best first."""
        order = np.argsort(-self.sign * values.mean(axis=0), kind="stable")
        level = 1 - self.confidence
        return [best, *(int(each) for each in order if each != best and adjusted[each] > level)]

    def _notes(
        self, names: tuple[str, ...], values: Floats, splits: NDArray[Any], kept: NDArray[Any]
    ) -> Iterator[str]:
        missing = [name for name, here in zip(names, kept, strict=True) if not here]
        used = int(splits.sum()) if kept.any() else 0
        if used < len(values):
            yield f"{used} of {len(values)} splits are judged: the others are not complete"
        if missing:
            yield f"not judged, because scores are missing or infinite: {', '.join(missing)}"
        if used == 1:
            yield "one split tells nothing of the spread: no model is distinguished from another"


def _against(pairs: ModelPairs, best: int) -> dict[str, Floats]:
    """The columns of differences from the best; the best itself is certain to equal itself."""
    itself = {
        "difference": 0.0,
        "difference_low": 0.0,
        "difference_high": 0.0,
        "p": 1.0,
        "p_holm": 1.0,
        "p_equal": 1.0,
        "p_worse": 0.0,
    }
    columns = {}
    for name, own in itself.items():
        column = getattr(pairs, PARTS.get(name, name))[:, best].copy()
        column[best] = own
        columns[name] = column
    return columns


def _complete(values: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Splits and models, of which no score is missing: the most scores that can be had so.

    Splits are taken in the order of the number of models that finished them.
    """
    there = np.isfinite(values)
    options = []
    for least in np.unique(there.sum(axis=1)):
        splits = there.sum(axis=1) >= least
        models = there[splits].all(axis=0)
        options.append((int(splits.sum() * models.sum()), splits, models))
    _, splits, models = max(options, key=lambda option: option[0])
    return splits, models


def _disjoint_tests(ratio: float) -> int:
    """How many test parts without a common row there can be: k of k folds, whose ratio is
    ``1 / (k - 1)``, however often they are repeated."""
    return max(1, round(1.0 + 1.0 / ratio))


def _checked_names(models: Sequence[str]) -> tuple[str, ...]:
    names = tuple(str(model) for model in models)
    repeated = {name for name in names if names.count(name) > 1}
    if not names or repeated:
        what = f"repeated names: {', '.join(sorted(repeated))}" if names else "no name"
        raise ValueError(f"models must be different names, one a column of scores; got {what}")
    return names


def _checked_scores(scores: ArrayLike, names: tuple[str, ...], repeats: int) -> Floats:
    values = read_numbers(scores, "scores")
    if values.ndim != 2 or values.shape[1] != len(names) or not len(values):
        raise ValueError(
            f"scores must have a row for each split and a column for each of {len(names)} models; "
            f"its shape is {values.shape}"
        )
    whole = isinstance(repeats, int | np.integer) and not isinstance(repeats, bool)
    if not whole or repeats < 1 or len(values) % repeats:
        raise ValueError(
            f"repeats={repeats!r} must be a number of equal parts of the {len(values)} splits"
        )
    # no mean is worse: leaving out such a split alone would hide it
    return np.where(np.isinf(values).any(axis=0), np.nan, values)


def _checked_simplicity(simplicity: ArrayLike | None, count: int) -> Floats:
    """Keys of the models, (n_models, n_keys): none are all equal, and NaN is not simple."""
    if simplicity is None:
        return np.zeros((count, 0))
    keys = read_numbers(simplicity, "simplicity")
    if keys.ndim not in (1, 2) or len(keys) != count:
        raise ValueError(f"simplicity must have {count} rows, one a model; got {keys.shape}")
    return np.nan_to_num(keys.reshape(count, -1), nan=np.inf, posinf=np.inf, neginf=-np.inf)


def _checked_number(name: str, value: float, *, open_low: bool = False) -> float:
    """A finite number that is not negative, nor zero with ``open_low``."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    if not is_real or not np.isfinite(value) or value < 0 or (open_low and value == 0):
        raise ValueError(f"{name}={value!r} must be {'above' if open_low else 'at least'} 0")
    return float(value)
