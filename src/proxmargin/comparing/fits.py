"""Models that were fitted one by one, behind the interface of a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fits", "Tried", "features_used"]


class Tried(Protocol):
    """Fitted models of some settings: `Fits`, or a `proxmargin.Path`."""

    @property
    def certificates(self) -> Sequence[Any]: ...
    @property
    def n_nonzero(self) -> NDArray[np.intp]: ...
    def __len__(self) -> int: ...
    def model(self, index: int) -> Any: ...


@dataclass(frozen=True, eq=False)
class Fits:
    """A list of models; those of other libraries have no certificate."""

    models: Sequence[Any]

    def __len__(self) -> int:
        return len(self.models)

    def model(self, index: int) -> Any:
        return self.models[index]

    @property
    def certificates(self) -> list[Any]:
        return [getattr(model, "certificate_", None) for model in self.models]

    @property
    def n_nonzero(self) -> NDArray[np.intp]:
        return np.array([features_used(model) for model in self.models], np.intp)


def features_used(model: Any) -> int:
    """Features with a nonzero coefficient; all of them for models without coefficients."""
    coef = getattr(model, "coef_", None)
    if coef is None:
        return int(model.n_features_in_)
    return int(np.count_nonzero(np.any(np.atleast_2d(coef) != 0, axis=0)))
