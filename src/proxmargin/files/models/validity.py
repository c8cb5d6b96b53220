"""Check that an estimator could have been fitted with its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from proxmargin.files.errors import ModelFileError
from proxmargin.inputs.validation import check_number
from proxmargin.kernels import Kernel, named_kernel
from proxmargin.runtime.brief import brief

__all__ = ["refuse_invalid"]

# rules for gamma that need the data
_GAMMA_RULES = ("scale", "auto")


def refuse_invalid(estimator: Any) -> None:
    """Refuse an estimator whose parameters do not pass the checks of its `fit`.

    Raises
    ------
    ModelFileError
        With the reason only.
    """
    for check in _checks(estimator):
        try:
            check()
        except Exception as error:  # values of any type meet comparisons not made for them
            name = type(estimator).__name__
            raise ModelFileError(
                f"its settings are none of a {name}: {brief(error, 400)}"
            ) from error


def _checks(estimator: Any) -> Iterator[Callable[[], object]]:
    yield estimator._check_parameters
    yield estimator._check_model
    yield partial(_check_class_weight, estimator.class_weight)
    if hasattr(estimator, "kernel"):
        yield partial(_check_kernel, estimator)


def _check_class_weight(weights: Any) -> None:
    if weights is None or (isinstance(weights, str) and weights == "balanced"):
        return
    if not isinstance(weights, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {weights!r}")
    for label, weight in weights.items():
        check_number(f"class_weight[{label!r}]", weight, low=0.0)


def _check_kernel(estimator: Any) -> None:
    kernel, gamma = estimator.kernel, estimator.gamma
    if isinstance(kernel, str | Kernel):
        known = isinstance(gamma, str) and gamma in _GAMMA_RULES
        options = {"degree": estimator.degree, "coef0": estimator.coef0}
        named_kernel(kernel, gamma=1.0 if known else gamma, X=None, **options)
        return
    raise ValueError(f"kernel must be a name or a kernel of this library, got {kernel!r}")
