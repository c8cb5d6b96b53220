"""What two fits must have in common for one to resume the other: model, parameters, data."""

from __future__ import annotations

import dataclasses
import hashlib
import marshal
from collections.abc import Callable, Mapping
from functools import partial, singledispatch
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import proxmargin
from proxmargin.data.designs import Design

# parameters that do not affect the iterates of a fit
FREE = frozenset(
    {"callbacks", "verbose", "time_limit", "max_iter", "cache_size", "random_state", "n_jobs"}
)
# size up to which an array is written out, instead of digested
LOOKED_AT = 256
# bytes of dense data hashed at a time
BLOCK = 1 << 24
# characters of a digest
DIGITS = 16
# characters of a value in a message, around where it differs
SHOWN = 200


@dataclasses.dataclass(frozen=True)
class Identity:
    """Model, parameters and data of a fit, as texts and digests."""

    version: str  # version of this library
    model: str
    parameters: Mapping[str, str]  # a text for each parameter that affects the iterates
    shape: tuple[int, ...]  # (n_samples, n_features), or that of an array of objects
    # labels, entries: digests of labels, weights and offset; and of the data, with the way they are
    # stored
    labels: str
    entries: str

    @classmethod
    def of(cls, estimator: Any, X: Any, classes: NDArray[Any], *targets: NDArray[Any]) -> Identity:
        """The identity of a fit of ``estimator`` to ``X``, (n_samples, n_features), and targets."""
        if isinstance(X, Design):
            raise ValueError("checkpoints are for data in memory: these are in blocks of rows")
        given = estimator.get_params(deep=False)
        return cls(
            version=proxmargin.__version__,
            model=type(estimator).__name__,
            parameters={name: _text(given[name]) for name in sorted(given) if name not in FREE},
            shape=tuple(map(int, X.shape)),
            labels=_digest(np.array([_text(label) for label in classes.tolist()]), *targets),
            # how the data are stored decides the order of sums and so their last bits
            entries=f"{X.dtype} {getattr(X, 'format', 'dense')} {_digest(*_parts(X))}",
        )

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Identity:
        """From its fields as JSON has them."""
        return cls(**{**plain, "shape": (*plain["shape"],)})

    def objection(self, earlier: Identity) -> str | None:
        """The difference that prevents this fit from resuming the ``earlier`` one, or None."""
        if earlier.version != self.version:
            return f"it was written by proxmargin {earlier.version}, and this is {self.version}"
        if earlier.model != self.model:
            return f"it is of a {earlier.model}, and this is a {self.model}"
        for name in sorted({*earlier.parameters, *self.parameters}):
            before, after = (each.parameters.get(name, "?") for each in (earlier, self))
            if before != after:
                before, after = _around_difference(before, after)
                return f"it was written with {name}={before}, and this fit has {after}"
        if earlier.shape != self.shape:
            return f"it is of data of shape {earlier.shape}, and these have {self.shape}"
        if earlier.labels != self.labels:
            return "it is of data with other labels or weights, or another offset"
        if earlier.entries != self.entries:
            return "it is of data with other entries, or stored in another way"
        return None


def _around_difference(*texts: str) -> list[str]:
    """Both texts; of long ones what surrounds the first character in which they differ."""
    whole = max(map(len, texts)) <= SHOWN
    pairs = enumerate(zip(*texts, strict=False))  # one may be the beginning of the other
    same = next((k for k, pair in pairs if pair[0] != pair[1]), min(map(len, texts)))
    start = 0 if whole else max(0, same - SHOWN // 2)
    end = start + SHOWN
    return [
        f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"
        for text in texts
    ]


@singledispatch
def _text(value: Any) -> str:
    """A text of the value that does not depend on the process."""
    if hasattr(value, "get_params"):  # which an estimator's fields are not, in a derived class
        return repr(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{type(value).__name__}({_entries(kept, '=')})"
    if isinstance(value, Callable):  # type: ignore[arg-type]
        name = getattr(value, "__qualname__", type(value).__qualname__)
        return f"{value.__module__}.{name}({_text(getattr(value, '__dict__', {}))})"
    return repr(value)


@_text.register
def _(value: partial) -> str:  # type: ignore[type-arg]
    return f"partial({_text(value.func)}, {_text(value.args)}, {_text(value.keywords)})"


@_text.register
def _(value: FunctionType) -> str:
    """A function by its name, code, defaults and closure."""
    code = hashlib.sha256(marshal.dumps(value.__code__)).hexdigest()[:DIGITS]
    held = [cell.cell_contents for cell in value.__closure__ or ()]
    given = _text([value.__defaults__, value.__kwdefaults__, held])
    return f"{value.__module__}.{value.__qualname__}({code}, {given})"


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


def _parts(X: Any) -> list[NDArray[Any]]:
    if not sparse.issparse(X):
        return [np.array([_text(each) for each in X.ravel()])] if X.dtype == object else [X]
    return [getattr(X, name) for name in ("data", "indices", "indptr")]


def _digest(*arrays: NDArray[Any]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape} ".encode())
        lines = array if array.ndim else array[None]
        step = max(1, BLOCK * max(len(lines), 1) // max(lines.nbytes, 1))
        for start in range(0, len(lines), step):  # memory maps are not read as a whole
            found.update(np.ascontiguousarray(lines[start : start + step]).tobytes())
    return found.hexdigest()[:DIGITS]
