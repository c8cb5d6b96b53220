"""Partitions of coefficients into groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.runtime.types import Array, Values


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of coefficients (n_features, n_outputs) into groups.

    Made by `within_classes`, `of_members` or `features`.

    Parameters
    ----------
    codes : (n_features,) integers
        Features with the same code form one group in each class. Codes start at zero and leave no
        gap. Where ``across_classes`` holds, each feature is a group of its own instead, and its
        group holds the coefficients of all classes.
    across_classes : bool

    Examples
    --------
    >>> from proxmargin.penalties import Groups
    >>> Groups.within_classes(["a", "a", "b"]).codes
    array([0, 0, 1])
    >>> Groups.of_members([[0, 2], [1]], 3).codes
    array([0, 1, 0])
    >>> Groups.features(3).across_classes
    True
    """

    codes: NDArray[np.intp]
    across_classes: bool = False

    @classmethod
    def within_classes(cls, labels: ArrayLike) -> Groups:
        """Groups of features with equal labels, in the order of the labels, separately in each
        class."""
        labels = np.asarray(labels)
        if labels.ndim != 1 or labels.size == 0:
            raise ValueError(
                "groups: labels must be one label a feature, (n_features,), got an array of shape "
                f"{labels.shape}"
            )
        if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
            raise ValueError("groups: labels must not be NaN or infinite")
        try:
            _, codes = np.unique(labels, return_inverse=True)
        except TypeError as error:
            raise ValueError(
                "groups: labels must be of one kind, such as all numbers or all text, got "
                f"{sorted({type(label).__name__ for label in labels.tolist()})}"
            ) from error
        return cls(codes.astype(np.intp))

    @classmethod
    def of_members(cls, members: Sequence[ArrayLike], n_features: int) -> Groups:
        """Groups of features, separately in each class, by the list of each group's features. Every
        feature must be in exactly one group."""
        codes = np.full(n_features, -1, dtype=np.intp)
        for code, features in enumerate(members):
            index = _indices(features, code, n_features)
            taken = index[codes[index] >= 0]
            if taken.size or np.unique(index).size < index.size:
                again = taken[0] if taken.size else _repeated(index)
                raise ValueError(f"groups overlap: feature {again} is listed twice")
            codes[index] = code
        missing = np.flatnonzero(codes < 0)
        if missing.size:
            raise ValueError(
                f"groups do not cover the features: {missing.size} of {n_features} are in no "
                f"group, feature {missing[0]} first"
            )
        return cls(codes)

    @classmethod
    def features(cls, n_features: int) -> Groups:
        """One group a feature: its coefficients in all classes."""
        if n_features < 1:
            raise ValueError(f"groups: n_features must be >= 1, got {n_features!r}")
        return cls(np.arange(n_features), across_classes=True)

    @property
    def n_features(self) -> int:
        return int(self.codes.size)

    @cached_property
    def n_groups(self) -> int:
        """Number of groups; where groups are within classes, in each class."""
        return int(self.codes.max(initial=-1)) + 1

    def restricted(self, index: NDArray[np.intp]) -> tuple[Groups, NDArray[np.intp]]:
        """The groups of some of the features, and which of the groups these are."""
        kept, codes = np.unique(self.codes[index], return_inverse=True)
        return replace(self, codes=codes.astype(np.intp)), kept.astype(np.intp)

    # A group is always a set of rows of the oriented array: coefficients as they are where groups
    # are within classes, transposed where groups are across them.

    def oriented(self, values: Array) -> Array:
        """``values``, transposed if need be, so that each group is a set of rows."""
        if values.shape[0] != self.n_features:
            raise ValueError(
                f"groups are of {self.n_features} features, the coefficients of {values.shape[0]}"
            )
        return np.ascontiguousarray(values.T if self.across_classes else values)

    def restored(self, values: Array) -> Array:
        """The inverse of `oriented`."""
        return np.ascontiguousarray(values.T) if self.across_classes else values

    def layout(self, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The oriented rows ordered by group, and the start of each group, then the end."""
        if self.across_classes:
            return np.arange(n_rows), np.array([0, n_rows])
        return self._layout

    @cached_property
    def _layout(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        order = np.argsort(self.codes, kind="stable")
        counts = np.bincount(self.codes, minlength=self.n_groups)
        return order, np.concatenate([[0], np.cumsum(counts)])

    def reduced(self, ufunc: np.ufunc, values: Array) -> Array:
        """``ufunc`` over each group of oriented ``values``, (n_groups, n_columns)."""
        order, starts = self.layout(values.shape[0])
        gathered = values if self.across_classes else values[order]
        reduced: Array = ufunc.reduceat(gathered, starts[:-1], axis=0)
        return reduced

    def spread(self, per_group: Values, n_rows: int) -> Values:
        """The entry of ``per_group`` for the group of each oriented row, (n_rows, n_columns)."""
        if self.across_classes:
            return np.broadcast_to(per_group, (n_rows, per_group.shape[1]))
        return per_group[self.codes]

    def radii(self, weights: Array, n_columns: int) -> Array:
        """One weight a group as (n_groups, n_columns) of the oriented view."""
        shaped = weights[None, :] if self.across_classes else weights[:, None]
        rows = 1 if self.across_classes else self.n_groups
        return np.ascontiguousarray(np.broadcast_to(shaped, (rows, n_columns)))


def _indices(features: ArrayLike, code: int, n_features: int) -> NDArray[np.intp]:
    index = np.asarray(features)
    if index.dtype.kind == "b" and index.shape == (n_features,):
        index = np.flatnonzero(index)
    if index.ndim != 1 or index.size == 0 or index.dtype.kind not in "iu":
        raise ValueError(
            f"groups: group {code} must be a list of at least one feature index, or a mask of the "
            f"features, got {features!r}"
        )
    if index.min() < 0 or index.max() >= n_features:
        raise ValueError(
            f"groups: group {code} has indices outside 0..{n_features - 1}: {index.min()} to "
            f"{index.max()}"
        )
    return index.astype(np.intp)


def _repeated(index: NDArray[np.intp]) -> int:
    values, counts = np.unique(index, return_counts=True)
    return int(values[np.argmax(counts)])
