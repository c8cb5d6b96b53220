"""What the fits of all classes that make many fits have in common."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning

__all__ = ["forget", "no_convergence_warnings"]


def forget(estimator: Any) -> None:
    """Drop what an earlier fit has learned."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


@contextmanager
def no_convergence_warnings() -> Iterator[None]:
    """Of single fits: one warning sums them up at the end. Filters are shared by all threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
