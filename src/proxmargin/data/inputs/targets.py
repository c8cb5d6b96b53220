"""Labels encoded as class indices, signs and weights, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.inputs.parameters import check_magnitude, real_numbers
from proxmargin.runtime.brief import shown
from proxmargin.runtime.memory import beside, empty_beside, mapped
from proxmargin.runtime.types import Array, Values

SHOWN = 5  # labels that an error names

ClassWeight = Mapping[Any, float] | str | None


def refuse_small_classes(
    classes: Values, counts: NDArray[np.intp], at_least: int, what: str, otherwise: str = ""
) -> None:
    """Raise ValueError that names the classes with fewer samples than ``what`` needs of each, and
    what to do; ``otherwise``: what else."""
    small = np.flatnonzero(counts < at_least)
    if not small.size:
        return
    named = [str(label) for label in classes[small[:SHOWN]]]
    sizes = ", ".join(f"{n} of {name}" for n, name in zip(counts[small], named, strict=False))
    more = f" and of {small.size - SHOWN} more" if small.size > SHOWN else ""
    without = f"leave these classes out (where a file is read: drop_classes={named}), "
    raise ValueError(
        f"{what} at least {at_least} samples of each class, and there are only {sizes}{more}: "
        f"{without if small.size < classes.size - 1 else ''}join them with others{otherwise}"
    )


def few_classes(classes: Values, where: str = "") -> ValueError:
    """The error for one class or none."""
    held = f"one class only, {_plain(classes[0])!r}" if classes.size else "no class"
    return ValueError(f"y holds {held}{where}: a classifier needs samples of at least 2 classes")


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels as class indices, with the weight of every sample."""

    classes: Values  # (n_classes,); the labels, sorted
    codes: NDArray[np.intp]  # (n_samples,) integers in [0, n_classes)
    weights: Array  # (n_samples,); sample weight times class weight
    offset: Array | None = None  # (n_samples,), added to the scores
    margins: Array | None = None  # (n_samples,), by which the own class has to lead

    @classmethod
    def encode(cls, y: Values, sample_weight: Array | None, class_weight: ClassWeight) -> Targets:
        """Encode ``y``; raises ValueError unless two classes have positive weight, and for class
        weights of labels that are not in ``y`` while some that are have none."""
        y = np.asarray(y)
        if isinstance(class_weight, Mapping):
            _check_labels_of(class_weight, y)
        weights = np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, float)
        if not np.isfinite(weights.sum()):
            raise ValueError("sample_weight is too large: the sum of the weights overflows")
        # ignore classes without weight, as if their rows had been removed
        classes = np.unique(y[weights > 0])
        codes = np.minimum(np.searchsorted(classes, y), classes.size - 1)
        return cls(classes, codes, weights).weighted(weights, class_weight)

    def weighted(self, sample_weight: Array, class_weight: ClassWeight) -> Targets:
        """The same labels with other weights; raises ValueError like `encode`."""
        classes, codes = self.classes, self.codes
        weights = sample_weight
        if class_weight is not None:
            weights = weights * _class_factors(classes, codes, weights, class_weight)[codes]
        present = classes[np.bincount(codes, weights, minlength=classes.size) > 0]
        if present.size < 2:
            raise few_classes(present, "" if np.all(weights > 0) else " with a positive weight")
        return self if weights is self.weights else replace(self, weights=weights)

    @property
    def mapped(self) -> Targets:
        """The same targets in scratch files, as vectors of data that are not in memory."""
        return replace(self, codes=mapped(self.codes), weights=mapped(self.weights))

    def picked(self, index: NDArray[np.intp]) -> Targets:
        """The targets of some of the samples, with all classes."""
        each = {name: None if one is None else one[index] for name, one in self._extras.items()}
        return Targets(self.classes, self.codes[index], self.weights[index], **each)

    @property
    def arrays(self) -> tuple[Values, ...]:
        """The arrays with one entry a sample: codes, weights, offset and margins if given."""
        extras = (each for each in self._extras.values() if each is not None)
        return (self.codes, self.weights, *extras)

    @property
    def _extras(self) -> dict[str, Array | None]:
        return {"offset": self.offset, "margins": self.margins}

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def shares(self) -> Array:
        """Weights that sum to one, (n_samples,)."""
        return np.divide(self.weights, self.total, out=empty_beside(self.weights))

    def signs(self, positive: int) -> Array:
        """+1 where the class is ``positive``, -1 elsewhere; (n_samples, 1)."""
        return beside(self.codes, np.where(self.codes == positive, 1.0, -1.0)[:, None])


def total_price(C: float, targets: Targets) -> float:
    """``C`` times the total weight; raises ValueError unless its magnitude is moderate."""
    price = C * targets.total
    check_magnitude("C times the total weight of the samples", price, positive=True)
    return price


def _class_factors(
    classes: Values, codes: NDArray[np.intp], weights: Array, class_weight: ClassWeight
) -> Array:
    """The factor of each class: from a dict, or inversely proportional to its total weight."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights, minlength=classes.size)
        live = totals > 0
        return np.divide(weights.sum() / live.sum(), totals, out=np.zeros(totals.size), where=live)
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict, got {shown(class_weight)}"
        )
    found = [class_weight.get(_plain(label), 1.0) for label in classes]
    factors = real_numbers("class_weight: weights", found)
    if factors.shape != classes.shape or not np.all(np.isfinite(factors) & (factors >= 0)):
        raise ValueError("class_weight: weights must be finite and >= 0")
    check_magnitude(
        "class_weight, the largest,", float(factors.max()), positive=bool(factors.any())
    )
    return factors


def _check_labels_of(class_weight: Mapping[Any, float], y: Values) -> None:
    """Raise for labels that ``y`` lacks, beside one of ``y`` without a weight: it is misspelt. With
    weights for all of ``y`` the data may be a part that lacks a class."""
    known = [_plain(label) for label in np.unique(y)]
    given = [*map(_plain, class_weight)]
    unknown = [label for label in given if label not in known]
    if unknown and any(label not in given for label in known):
        raise ValueError(
            f"class_weight names {unknown}, none of which is among the labels in y: "
            f"{', '.join(map(repr, known[:SHOWN]))}{', ...' if known[SHOWN:] else ''}"
        )


def _plain(label: object) -> object:
    return label.item() if isinstance(label, np.generic) else label
