"""Margin classifiers whose every fit carries a duality-gap certificate."""

from __future__ import annotations

import importlib
from typing import Any

from proxmargin.models.fitting.registry import CROSS_VALIDATED, MODELS

__version__ = "0.2.0"

# Public names and the module each lives in; nothing is imported before it is asked for, so that
# `import proxmargin` costs milliseconds and never loads plotting or data-frame libraries.
_HOMES = {
    **{name: f"models.classifiers.{model.home}" for name, model in MODELS.items()},
    **dict.fromkeys(CROSS_VALIDATED, "models.selection.cross_validated"),
    "nu_range": "models.limits.nu",
    "kappa_max": "models.limits.kappa",
    "CalibratedMargin": "models.selection.calibration",
    "alpha_max": "models.paths",
    "critical_C": "models.paths",
    "alpha_grid": "models.paths",
    "margin_path": "models.paths",
    "Path": "models.paths",
    "StabilitySelection": "models.selection.stability.selector",
    "feature_report": "models.selection.report",
    "PathDisplay": "studies.displays.strengths",
    "CVDisplay": "studies.displays.strengths",
    "StabilityDisplay": "studies.displays.strengths",
    "ConvergenceDisplay": "studies.displays.fits",
    "CriticalDifferenceDisplay": "studies.displays.fits",
    "PermutationDisplay": "studies.displays.fits",
    "ComparisonDisplay": "studies.displays.comparison",
    "certify": "models.auditing",
    "Certificate": "optimality.certificates.certificate",
    "CertificateList": "optimality.certificates.certificate",
    "History": "solvers.callbacks",
    "Progress": "solvers.callbacks",
    "Checkpoint": "solvers.callbacks",
    "save_model": "files.models.model",
    "load_model": "files.models.model",
    "to_onnx": "files.models.onnx",
    "read_data": "files.tables.table",
    "open_dataset": "data.inputs.opening",
    "Dataset": "data.datasets",
    "permutation_test": "models.permutations",
    "PermutationTest": "models.permutations",
    "compare": "studies.comparing.run",
    "Comparison": "studies.comparing.comparison",
    "compare_several": "studies.comparing.several",
    "SeveralComparisons": "studies.comparing.several",
}

# public modules, whose names are not repeated here
_MODULES = ("losses", "paths", "penalties", "reports", "stats")

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"proxmargin.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'proxmargin' has no attribute {name!r}")
    module = importlib.import_module(f"proxmargin.{_HOMES[name]}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
