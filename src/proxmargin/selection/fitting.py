"""What the fits of all classes that make many fits have in common."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from proxmargin.inputs.validation import check_number

__all__ = ["check_threads", "forget", "no_convergence_warnings"]


def check_threads(n_jobs: Any) -> None:
    """Raise ValueError unless it is a number of threads, as joblib counts them."""
    check_number("n_jobs", n_jobs, low=-np.inf, integer=True, optional=True)
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads, -1 for all cores or None, got 0")


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
