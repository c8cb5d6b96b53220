"""What the labels of models on the same rows say: where two disagree, and what would be missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, t

from proxmargin.runtime.types import Facts, Record
from proxmargin.studies.comparing.evidence import Evidence, adjusted_for_pairs
from proxmargin.studies.comparing.metrics import MetricRange
from proxmargin.studies.comparing.setup import Setup
from proxmargin.studies.stats.scores import CONFIDENCE, Floats

SCOPE = "for these fitted models and rows"  # what the counts are about
WIDE = (
    "with as many features as rows or more, chance alone gives p below 0.05 up to twice as often "
    "as it should: the counts do not know how much a model changes with its training rows"
)


@dataclass(frozen=True, eq=False)
class Agreement:
    """The held-out labels of the first repetition, of models that have labels for all its rows."""

    names: tuple[str, ...]
    right: NDArray[np.bool_]  # (n_models, n_rows)
    labels: NDArray[np.intp]  # (n_models, n_rows)
    is_wide: bool  # whether there are as many features as samples

    @classmethod
    def of(cls, names: Sequence[str], held: Facts, is_wide: bool) -> Agreement:
        """Of some models, in this order. ``held``: `Ranking.held_out`."""
        labels = {name: held[name]["label"] for name in names if name in held}
        whole = {name: each for name, each in labels.items() if None not in each}
        true = np.array(held["true"])
        found = np.array([*whole.values()], np.intp).reshape(len(whole), true.size)
        return cls(tuple(whole), found == true, found, is_wide)

    @property
    def n_rows(self) -> int:
        return int(self.right.shape[1])

    @cached_property
    def disagreement(self) -> NDArray[np.float64]:
        """The share of rows with different labels, (n_models, n_models)."""
        return np.array([(each != self.labels).mean(axis=1) for each in self.labels])

    def against(self, best: str | None) -> list[Record]:
        """The best against each other model: rows that one of them alone has right, and the exact
        test of McNemar, adjusted by Holm's procedure for all pairs of models."""
        if best not in self.names or len(self.names) < 2:
            return []
        hits = self.right.astype(np.intp)
        alone = hits @ (1 - hits).T  # the first has right, the second has not
        p = exact_mcnemar(alone, alone.T)
        adjusted = adjusted_for_pairs(p)
        place = self.names.index(best)
        return [
            {
                "best": best,
                "model": name,
                "best_alone": int(alone[place, k]),
                "model_alone": int(alone[k, place]),
                "p": float(p[place, k]),
                "p_holm": float(adjusted[place, k]),
            }
            for k, name in enumerate(self.names)
            if k != place
        ]

    def missed(self, evidence: Evidence, setup: Setup, basis: MetricRange) -> Record:
        """The difference from the best that these data would usually miss, the median over the
        other models: of two named beforehand, and of any pair of all of them (`missed_difference`
        after the first step of Holm's procedure)."""
        best, splits = evidence.best, evidence.n_splits
        others = [name for name in self.names if name != best and name in evidence.models]
        if best not in self.names or not others or splits < 2:
            return {}
        place = self.names.index(best)
        shares = self.disagreement[place, [self.names.index(name) for name in others]]
        columns = [evidence.models.index(name) for name in others]
        reaches = (evidence.difference_high - evidence.difference)[columns]
        repeats, pairs = setup.protocol.repeats, len(self.names) * (len(self.names) - 1) // 2
        rows = float(np.nan if not basis.counted else basis.rows)
        of = partial(missed_difference, reaches, splits, shares, rows, repeats, evidence.unit)
        return {
            "rows": self.n_rows,
            "repeats": repeats,
            "disagreement": float(np.median(shares)),
            "difference": float(np.median(of())),
            "models": len(self.names),
            "difference_of_all": float(np.median(of(pairs))),
            "largest": basis.high - basis.low,  # difference of two scores
        }


POWER = 0.8  # with which the difference that is told would be found
# the same difference by the share q of n rows on which two models disagree, over sqrt(q / n):
# simulated for nearest centroids, with one pass over the rows and with several
BY_DISAGREEMENT = 3.0  # multiples of sqrt(q / n): simulated, several repetitions
BY_DISAGREEMENT_ONCE = 5.0  # the same of one repetition


def exact_mcnemar(first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
    """Two-sided p-values of McNemar's exact test. ``first``: rows that the first model alone has
    right; ``second``: those that the second alone has."""
    fewer, both = np.minimum(first, second), first + second
    return np.asarray(np.minimum(1.0, 2.0 * binom.cdf(fewer, both, 0.5)))


def missed_difference(
    reach: Floats,
    splits: int,
    disagreement: Floats,
    rows: float,
    repeats: int,
    unit: float = 1.0,  # width of the range of the scores
    pairs: int = 1,  # tested, at the level of the first step of Holm's procedure
) -> Floats:
    """The true difference of two scores that a two-sided test at 5 % finds in four of five data
    sets of this size, from half the 95 % intervals of differences, the shares of the rows on which
    two models disagree, and the number of independent rows (NaN: the score is no share of them)."""
    freedom, level = splits - 1, 1 - CONFIDENCE
    error = reach / t.isf(0.5 * level, freedom)
    factor = BY_DISAGREEMENT_ONCE if repeats == 1 else BY_DISAGREEMENT
    by_rows = unit * factor * np.sqrt(disagreement / rows)
    beyond, power = t.isf(0.5 * level / pairs, freedom), t.ppf(POWER, freedom)
    once = t.isf(0.5 * level, freedom) + power
    return np.asarray(np.fmax(once * error, by_rows) * (beyond + power) / once)
