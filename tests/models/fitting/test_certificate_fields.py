"""What every fit says of itself is made of plain Python values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from proxmargin.optimality.certificates.certificate import Certificate
from tests.cases import ESTIMATORS, KERNEL_MACHINES

TYPES = {"converged": bool, "n_iter": int, "stop_reason": str, "solver": str, "because": str}


def clouds(classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(42) % classes
    return rng.standard_normal((42, 4)) + (np.arange(4) == y[:, None]), y


def check_fields(model: Any) -> None:
    found = model.certificate_
    parts = [found] if isinstance(found, Certificate) else [*found]
    for certificate in parts:
        for name, value in certificate.to_dict().items():
            assert type(value) is TYPES.get(name, float), name
        json.dumps(certificate.to_dict())
    for name in ("primal", "dual", "gap", "relative_gap", "kkt_residual", "n_passes", "seconds"):
        assert type(getattr(found, name)) is float, name


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
@pytest.mark.parametrize("classes", [2, 3])
def test_the_fields_of_a_certificate_are_plain(make: Any, classes: int, rng) -> None:
    check_fields(make().fit(*clouds(classes, rng)))


@pytest.mark.parametrize("make", KERNEL_MACHINES.values(), ids=KERNEL_MACHINES.keys())
def test_those_of_a_kernel_machine_are_too(make: Any, rng) -> None:
    check_fields(make(kernel="rbf").fit(*clouds(2, rng)))


@pytest.mark.parametrize("make", KERNEL_MACHINES.values(), ids=KERNEL_MACHINES.keys())
def test_those_of_a_method_on_the_dual_are_too(make: Any, rng) -> None:
    check_fields(make(solver="fapg-star", tol=1e-3).fit(*clouds(2, rng)))
