"""Models over several data sets: average ranks, and which of them can be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from proxmargin.runtime.brief import Listing, html_line, number
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Axes, Facts, Frame, Record
from proxmargin.studies.stats import (
    Friedman,
    Nemenyi,
    friedman,
    holm,
    nemenyi,
    wilcoxon_signed_ranks,
)
from proxmargin.studies.stats.ranks import MOST_EXACT
from proxmargin.studies.stats.scores import MAJORITY, Floats, ScoreTable, check_fraction

if TYPE_CHECKING:
    from proxmargin.studies.comparing.comparison import Comparison
    from proxmargin.studies.displays.fits import CriticalDifferenceDisplay


SHOWN = 17  # lines of the table in a session
FEW_SETS = 6  # Wilcoxon's exact test of two models cannot reach p = 0.05 on fewer: 2^(1 - 5) > 0.05


@dataclass(frozen=True, eq=False, repr=False)
class SeveralComparisons:
    """Mean scores of models on several data sets; printing it shows the table and the tests.

    Attributes
    ----------
    models : tuple of str
        The best average rank first; models that are left out last.
    datasets : tuple of str
    scores : (n_models, n_datasets)
        Mean scores over the folds; NaN where a model has none.
    metric : str
    larger_is_better : bool
    alpha : float
        Level of the tests.
    left_out : tuple of str
        Models without a score on some data set: they have no rank.
    average_ranks : (n_models,)
        1 is the best; NaN for models that are left out.
    friedman : Friedman or None
        Whether the models differ at all, with the test of Iman and Davenport. None, as ``nemenyi``,
        with fewer than two data sets or two models.
    nemenyi : Nemenyi or None
        Which pairs of models differ.
    notes : tuple of str
        What a reader must know, with the notes of each comparison.

    See Also
    --------
    compare_several : Makes one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import compare, compare_several
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> found, models = {}, ["DWD", "MarginFDA"]
    >>> for name, rows in {"first": slice(0, 200), "second": slice(200, 400)}.items():
    ...     found[name] = compare(X[rows], y[rows], models=models, cv=2, quick=True, progress=False)
    >>> several = compare_several(found)
    >>> sorted(several.models), several.datasets
    (['DWD', 'MarginFDA'], ('first', 'second'))
    """

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    scores: Floats
    metric: str
    larger_is_better: bool
    alpha: float
    left_out: tuple[str, ...]
    average_ranks: Floats
    friedman: Friedman | None
    nemenyi: Nemenyi | None
    notes: tuple[str, ...]

    @property
    def judged(self) -> tuple[str, ...]:
        """The models that have ranks, the best first."""
        return self.models[: len(self.models) - len(self.left_out)]

    @property
    def best(self) -> str | None:
        """The model with the best average rank."""
        return self.judged[0] if self.judged else None

    @property
    def equivalent(self) -> tuple[str, ...]:
        """The models that are not distinguishable from the best, itself included: all, unless the
        test of Iman and Davenport says that some differ."""
        tested = self.friedman
        if tested is None or self.nemenyi is None or tested.iman_davenport_pvalue > self.alpha:
            return self.judged
        pairs = zip(self.judged, self.nemenyi.pvalue[0], strict=True)
        return tuple(name for name, p in pairs if p > self.alpha)

    @property
    def table(self) -> Frame:
        """A frame with a row for each model: a column for each data set, and the average rank."""
        pandas = optional("pandas", "a table of comparisons")
        frame = pandas.DataFrame(
            self.scores, index=pandas.Index(self.models, name="model"), columns=self.datasets
        )
        frame["average_rank"] = self.average_ranks
        return frame

    def tests(self) -> Frame:
        """A frame with a row for each pair of models that have ranks.

        Nemenyi's p-values are adjusted for all pairs; beside them those of Wilcoxon's signed ranks,
        which depend on no third model, as they are and after Holm's procedure.
        """
        if self.nemenyi is None:
            raise ValueError("tests need two models or more with scores on two data sets or more")
        frame = self.nemenyi.to_frame().rename(columns={"pvalue": "p_nemenyi"})
        method: Literal["exact", "normal"]
        method = "exact" if len(self.datasets) <= MOST_EXACT else "normal"
        pandas, judged = optional("pandas", "a table of comparisons"), self.judged
        scores = pandas.DataFrame(self.scores[: len(judged)].T, columns=judged)
        signed = wilcoxon_signed_ranks(scores, method=method)
        frame["p_wilcoxon"] = signed.to_frame()["pvalue"]
        frame["p_wilcoxon_holm"] = np.asarray(holm(frame["p_wilcoxon"].to_numpy()))
        return frame

    def plot(self, ax: Axes | None = None) -> CriticalDifferenceDisplay:
        """Draw average ranks with the critical difference: a `CriticalDifferenceDisplay`."""
        from proxmargin.studies.displays.fits import CriticalDifferenceDisplay

        if self.nemenyi is None:
            raise ValueError("ranks need two models or more with scores on two data sets or more")
        return CriticalDifferenceDisplay(self.nemenyi).plot(ax)

    def to_dict(self) -> Record:
        """All of it as plain values, ready to be written as JSON; NaN where there is no number."""
        rows = zip(self.models, self.scores.tolist(), self.average_ranks.tolist(), strict=True)
        tests, pairs = self.friedman, self.nemenyi
        names = ("statistic", "pvalue", "iman_davenport", "iman_davenport_pvalue")
        return {
            "format": "proxmargin comparisons",
            "version": 1,
            "metric": self.metric,
            "larger_is_better": self.larger_is_better,
            "datasets": list(self.datasets),
            "models": [
                {"name": name, "scores": scores, "average_rank": rank}
                for name, scores, rank in rows
            ],
            "friedman": None if tests is None else {name: getattr(tests, name) for name in names},
            "nemenyi": None
            if pairs is None
            else {
                "critical_difference": pairs.critical_difference,
                "alpha": pairs.alpha,
                "p": pairs.pvalue.tolist(),
                "groups": [[pairs.names[each] for each in group] for group in pairs.groups()],
            },
            "best": self.best,
            "equivalent": list(self.equivalent),
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }

    def listing(self) -> Listing:
        """The table as it is printed."""
        rows = [
            [name, *(number(score, ".3f") for score in scores), number(rank, ".2f")]
            for name, scores, rank in zip(self.models, self.scores, self.average_ranks, strict=True)
        ]
        return Listing(["model", *self.datasets, "average rank"], rows)

    def remarks(self) -> list[str]:
        """What is printed under the table: the tests and the notes."""
        return [*self._verdict(), *(f"Note: {note}." for note in self.notes)]

    def __str__(self) -> str:
        direction = "larger" if self.larger_is_better else "smaller"
        head = f"{self.metric.replace('_', ' ')}, {direction} is better"
        return "\n\n".join([head, self.listing().plain(), *self.remarks()])

    def __repr__(self) -> str:
        return "\n".join([*self.listing().plain().splitlines()[:SHOWN], *self._verdict()])

    def _repr_html_(self) -> str:
        return "".join(html_line(each) for each in self._verdict()) + self.listing().html()

    def _verdict(self) -> Iterator[str]:
        if self.friedman is None or self.nemenyi is None:
            return
        p = self.friedman.iman_davenport_pvalue
        told = "some models differ" if p <= self.alpha else "the models are not distinguishable"
        yield (
            f"Over {len(self.datasets)} data sets {told}: Iman and Davenport's test of the average "
            f"ranks has p = {p:.2g} (Friedman's {self.friedman.pvalue:.2g})."
        )
        if p > self.alpha:
            return
        others = ", ".join(self.equivalent[1:]) or "no other model"
        least = self.nemenyi.critical_difference
        yield (
            f"Best average rank: {self.best}. Not distinguishable from it: {others} "
            f"(Nemenyi: ranks differ by less than {least:.2f}, level {self.alpha:g})."
        )


def compare_several(
    comparisons: Mapping[str, Comparison | Facts],
    *,
    metric: str | None = None,
    alpha: float = 0.05,
) -> SeveralComparisons:
    """Compare models over data sets by their ranks on each.

    Parameters
    ----------
    comparisons : mapping of str to Comparison
        The comparison of each data set by its name, or what its `Comparison.to_dict` returned.
    metric : str, optional
        One of the metrics of all comparisons; by default the one that their models were ordered by.
    alpha : float
        Level of the tests.

    Returns
    -------
    SeveralComparisons

    Raises
    ------
    ValueError
        No comparison; a metric that is not in all of them, or of which they differ.

    Notes
    -----
    Data sets are independent, so that no correction is needed as for folds: what counts is their
    number. Tests of ranks ask whether a model is better on most data sets, not by how much
    (Demsar 2006).

    See Also
    --------
    compare : Compares on one data set.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.utils import shuffle
    >>> from proxmargin import compare, compare_several
    >>> X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> found, models = {}, ["DWD", "MarginFDA"]
    >>> for name, rows in {"first": slice(0, 200), "second": slice(200, 400)}.items():
    ...     found[name] = compare(X[rows], y[rows], models=models, cv=2, quick=True, progress=False)
    >>> compare_several(found).scores.shape
    (2, 2)
    """
    facts = {
        str(name): each if isinstance(each, Mapping) else each.to_dict()
        for name, each in comparisons.items()
    }
    if not facts:
        raise ValueError("comparisons is empty: it must have a comparison for each data set")
    if metric is None:  # that by which the models of all comparisons were ordered
        metric, *others = sorted({str(each["protocol"]["scoring"]) for each in facts.values()})
        if others:
            names = ", ".join([metric, *others])
            raise ValueError(f"comparisons are ordered by several metrics: {names}; give metric=")
    larger, alpha = _agreed_direction(facts, metric), check_fraction("alpha", alpha)
    means = [_means(each, metric) for each in facts.values()]
    models = list(dict.fromkeys(model for found in means for model in found))
    scores = np.array([[found.get(model, np.nan) for found in means] for model in models])
    scores = scores.reshape(len(models), len(means))
    complete, ranks = np.isfinite(scores).all(axis=1), np.full(len(models), np.nan)
    if complete.any():
        ranks[complete] = ScoreTable(scores[complete].T, ()).ranks(larger).mean(axis=0)
    order = np.argsort(ranks, kind="stable")  # NaN last
    ranked, scores, count = tuple(models[each] for each in order), scores[order], complete.sum()
    kept, tested = ranked[:count], scores[:count].T
    tests: tuple[Friedman | None, Nemenyi | None] = (None, None)
    if min(tested.shape) > 1:
        tests = (
            replace(friedman(tested, higher_is_better=larger), names=kept),
            replace(nemenyi(tested, alpha=alpha, higher_is_better=larger), names=kept),
        )
    own = (f"{name}: {note}" for name, each in facts.items() for note in each.get("notes", ()))
    return SeveralComparisons(
        models=ranked,
        datasets=tuple(facts),
        scores=scores,
        metric=metric,
        larger_is_better=larger,
        alpha=alpha,
        left_out=ranked[count:],
        average_ranks=ranks[order],
        friedman=tests[0],
        nemenyi=tests[1],
        notes=(*_notes(scores[count:], ranked[count:], list(facts)), *own),
    )


def _notes(scores: Floats, missing: Sequence[str], datasets: Sequence[str]) -> Iterator[str]:
    """What is missing, and what so many data sets can tell."""
    for name, row in zip(missing, np.isnan(scores), strict=True):
        where = [each for each, absent in zip(datasets, row, strict=True) if absent]
        yield f"{name} has no score on {', '.join(where)}, and no rank"
    if len(datasets) < FEW_SETS:
        yield (
            f"tests of ranks need more data sets: with fewer than {FEW_SETS} no two models can be "
            "told apart by Wilcoxon's signed ranks"
        )


def _agreed_direction(facts: Mapping[str, Facts], metric: str) -> bool:
    """Whether a larger score of the metric is better."""
    found = set()
    for name, each in facts.items():
        told = {known["name"]: known["larger_is_better"] for known in each["protocol"]["metrics"]}
        if metric not in told:
            raise ValueError(f"metric={metric!r} is not one of {name}: {', '.join(told)}")
        found.add(bool(told[metric]))
    if len(found) > 1:
        raise ValueError(
            f"metric={metric!r} is better larger in one comparison, smaller in another"
        )
    return found.pop()


def _means(facts: Facts, metric: str) -> dict[str, float]:
    """The mean score of each model, NaN where there is none; without the majority, from which a
    difference would be no news."""
    models = [each for each in facts["models"] if each["name"] != MAJORITY]
    found = {each["name"]: each["metrics"].get(metric, {}).get("mean") for each in models}
    return {name: np.nan if mean is None else float(mean) for name, mean in found.items()}
