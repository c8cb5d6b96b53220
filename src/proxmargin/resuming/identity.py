"""What two fits must have in common for one to go on where the other was cut short."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import proxmargin

__all__ = ["Identity"]

# parameters that change how long a fit takes and what is told of it, but not where it goes
FREE = frozenset(
    {"callbacks", "verbose", "time_limit", "max_iter", "cache_size", "random_state", "n_jobs"}
)
# entries of the data, along each axis, that the digest looks at
LOOKED_AT = 256
# letters of a digest, and of what a message shows of a value
DIGITS, SHOWN = 16, 80


@dataclasses.dataclass(frozen=True)
class Identity:
    """Model, parameters and data of a fit, in words and digests.

    Attributes
    ----------
    version : str
        Of this library.
    model : str
    parameters : dict
        A text for each parameter that matters.
    shape : (n_samples, n_features)
    labels, entries : str
        Digests: of all labels and weights, and of the data (storage, and evenly spaced entries).
    """

    version: str
    model: str
    parameters: Mapping[str, str]
    shape: tuple[int, int]
    labels: str
    entries: str

    @classmethod
    def of(cls, estimator: Any, X: Any, classes: NDArray[Any], *targets: NDArray[Any]) -> Identity:
        """The identity of a fit of ``estimator`` to ``X``, (n_samples, n_features), and targets."""
        given = estimator.get_params(deep=False)
        return cls(
            version=proxmargin.__version__,
            model=type(estimator).__name__,
            parameters={name: _text(given[name]) for name in sorted(given) if name not in FREE},
            shape=(int(X.shape[0]), int(X.shape[1])),
            labels=_digest(np.array([_text(label) for label in classes.tolist()]), *targets),
            entries=_storage(X) + " " + _digest(*_samples(X)),
        )

    def objection(self, earlier: Identity) -> str | None:
        """What keeps this fit from going on where the ``earlier`` one was, or None."""
        for differs in (_of_version, _of_model, _of_parameters, _of_data):
            found = differs(earlier, self)
            if found:
                return found
        return None


def _of_version(earlier: Identity, now: Identity) -> str | None:
    if earlier.version == now.version:
        return None
    return f"it was written by proxmargin {earlier.version}, and this is {now.version}"


def _of_model(earlier: Identity, now: Identity) -> str | None:
    if earlier.model == now.model:
        return None
    return f"it is of a {earlier.model}, and this is a {now.model}"


def _of_parameters(earlier: Identity, now: Identity) -> str | None:
    for name in sorted({*earlier.parameters, *now.parameters}):
        before, after = (each.parameters.get(name, "?") for each in (earlier, now))
        if before != after:
            return f"it was written with {name}={before[:SHOWN]}, and this fit has {after[:SHOWN]}"
    return None


def _of_data(earlier: Identity, now: Identity) -> str | None:
    if earlier.shape != now.shape:
        return f"it is of data of shape {earlier.shape}, and these have {now.shape}"
    if earlier.labels != now.labels:
        return "it is of data with other labels or weights"
    if earlier.entries != now.entries:
        return "it is of data with other entries, or stored in another way"
    return None


@singledispatch
def _text(value: Any) -> str:
    """A text that is the same in another process for the same value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{type(value).__name__}({_entries(kept, '=')})"
    if isinstance(value, Callable):  # type: ignore[arg-type]
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value))}"
    return repr(value)


@_text.register
def _(value: np.generic) -> str:
    return repr(value.item())


@_text.register
def _(value: np.ndarray) -> str:
    if value.size <= LOOKED_AT:
        return _text(value.tolist())
    return f"an array of shape {value.shape} with digest {_digest(value)}"


@_text.register(list)
@_text.register(tuple)
def _(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]"


@_text.register(set)
@_text.register(frozenset)
def _(value: Any) -> str:
    return f"[{', '.join(sorted(map(_text, value)))}]"


@_text.register
def _(value: dict) -> str:  # type: ignore[type-arg]
    return f"{{{_entries(value, ': ')}}}"


def _entries(value: Mapping[Any, Any], between: str) -> str:
    return ", ".join(f"{key}{between}{_text(each)}" for key, each in value.items())


def _storage(X: Any) -> str:
    """How the data are stored: sums over other orders have other last bits."""
    return f"{X.dtype} {getattr(X, 'format', 'dense')}"


def _samples(X: Any) -> list[NDArray[Any]]:
    """Entries that are spread over the data; of sparse data with their places."""
    if not sparse.issparse(X):
        rows, columns = (max(1, -(-size // LOOKED_AT)) for size in X.shape)
        return [X[::rows, ::columns]]
    parts = (getattr(X, name) for name in ("data", "indices", "indptr"))
    return [part[:: max(1, -(-part.size // LOOKED_AT**2))] for part in parts]


def _digest(*arrays: NDArray[Any]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape} ".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:DIGITS]
