"""The types of what users give: data, labels, strengths, and how samples are weighed and split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.runtime.types import Values

if TYPE_CHECKING:
    from proxmargin.data.datasets import Dataset


class SparseMatrix(Protocol):
    """A matrix or an array of `scipy.sparse`."""

    def tocsr(self) -> Any: ...


class Splitter(Protocol):
    """A splitter of scikit-learn."""

    def split(
        self, X: Values, y: Values | None = None, groups: Values | None = None
    ) -> Iterable[object]: ...


# data frames and the arrays of other libraries turn into arrays; a kernel takes any objects
Features: TypeAlias = "ArrayLike | SparseMatrix | Dataset | Sequence[object]"
Labels: TypeAlias = ArrayLike | Sequence[object]
ByFeature: TypeAlias = ArrayLike | Mapping[Any, float] | None
Splits: TypeAlias = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]]
Scoring: TypeAlias = str | Callable[..., float] | None
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None

MultiClass: TypeAlias = Literal["joint", "ovr"]
OneVsRest: TypeAlias = Literal["ovr"]
KernelName: TypeAlias = Literal["linear", "rbf", "poly", "sigmoid", "precomputed"]
KernelChoice: TypeAlias = KernelName | Callable[[Any, Any], Any]
Width: TypeAlias = Literal["scale", "auto"] | float
