"""The accuracy of a model on samples that its fits have not seen, for ``fit --cv``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from proxmargin.comparing.layout import number

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table

__all__ = ["FoldMeans", "held_out_accuracy"]

SEED = 0  # of the shuffled folds


@dataclass(frozen=True)
class FoldMeans:
    """Means over the folds, and a 95 % interval of the accuracy, as in comparisons."""

    folds: int
    accuracy: float
    low: float
    high: float
    balanced_accuracy: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        mean, low, high = (number(v, ".3f") for v in (self.accuracy, self.low, self.high))
        return (
            f"{mean} [{low}, {high}] on held-out samples ({self.folds}-fold cross-validation), "
            f"balanced {number(self.balanced_accuracy, '.3f')}"
        )


def held_out_accuracy(
    make: Callable[[], Any], table: Table, folds: int, quiet: bool, imputer: Any = None
) -> FoldMeans:
    """Fit to all folds but one at a time, and score the predictions for the one left out.

    Parameters
    ----------
    make : callable
        Returns an unfitted estimator, which makes all of its choices in its ``fit``.
    imputer : transformer, optional
        A copy of it fills in the missing cells, by the values of the other folds.

    Raises
    ------
    ValueError
        There are fewer samples of a class than folds, or fewer than two folds.
    """
    import numpy as np
    from sklearn.metrics import accuracy_score, balanced_accuracy_score
    from sklearn.model_selection import StratifiedKFold

    from proxmargin.runtime.progress import ProgressBar

    X: Any = table.X
    y: Any = table.y
    _check(folds, y)
    splits = StratifiedKFold(folds, shuffle=True, random_state=SEED).split(X, y)
    scores = []
    with ProgressBar("cross-validation: folds", folds, shown=not quiet) as progress:
        for place, (train, test) in enumerate(splits, 1):
            progress.starts(f"fold {place}")
            model, fill = make(), _filling(imputer, X[train])
            weights = None if table.weights is None else table.weights[train]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # told of by the fit to all samples
                model.fit(fill(X[train]), y[train], sample_weight=weights)
                given = None if table.weights is None else table.weights[test]
                found = model.predict(fill(X[test]))
                scores.append(
                    [
                        score(y[test], found, sample_weight=given)
                        for score in (accuracy_score, balanced_accuracy_score)
                    ]
                )
            progress.advance()
    low, high = _interval(np.array(scores)[:, 0], y)
    accuracy, balanced = np.mean(scores, axis=0).tolist()
    return FoldMeans(folds, accuracy, low, high, balanced)


def _filling(imputer: Any, X: Any) -> Callable[[Any], Any]:
    """What fills in missing cells, after these rows."""
    if imputer is None:
        return lambda rows: rows
    from sklearn.base import clone

    fitted: Callable[[Any], Any] = clone(imputer).fit(X).transform
    return fitted


def _check(folds: int, y: Any) -> None:
    import numpy as np

    if folds < 2:
        raise ValueError(f"--cv {folds}: cross-validation needs at least 2 folds")
    classes, counts = np.unique(y, return_counts=True)
    least = int(counts.argmin())
    if counts[least] < folds:
        raise ValueError(
            f"--cv {folds} folds need as many samples of each class, and of {classes[least]!s} "
            f"there are {counts[least]}: choose fewer folds"
        )


def _interval(scores: Any, y: Any) -> tuple[float, float]:
    """As a comparison has it: over folds, and no shorter than the number of samples allows."""
    import numpy as np

    from proxmargin.comparing.basis import basis_of
    from proxmargin.comparing.evidence import Evidence

    found = Evidence.of(
        scores[:, None],
        ["model"],
        test_ratio=1 / (len(scores) - 1),
        basis=basis_of("accuracy", np.unique(y, return_counts=True)[1]),
    )
    row = found.row("model")
    return float(row["low"]), float(row["high"])
