"""Margin classifiers whose every fit carries a duality-gap certificate."""

from __future__ import annotations

import importlib
from typing import Any

from proxmargin.estimators.registry import CROSS_VALIDATED, MODELS

__version__ = "0.1.0"

# Public names and the module each lives in; nothing is imported before it is asked for, so that
# `import proxmargin` costs milliseconds and never loads plotting or data-frame libraries.
_HOMES = {
    **{name: f"estimators.models.{model.home}" for name, model in MODELS.items()},
    **dict.fromkeys(CROSS_VALIDATED, "selection.cross_validated"),
    "nu_range": "limits.nu",
    "kappa_max": "limits.kappa",
    "CalibratedMargin": "selection.calibration",
    "alpha_max": "paths",
    "critical_C": "paths",
    "alpha_grid": "paths",
    "margin_path": "paths",
    "Path": "paths",
    "StabilitySelection": "selection.stability.selector",
    "feature_report": "selection.report",
    "PathDisplay": "displays.strengths",
    "CVDisplay": "displays.strengths",
    "StabilityDisplay": "displays.strengths",
    "ConvergenceDisplay": "displays.fits",
    "CriticalDifferenceDisplay": "displays.fits",
    "PermutationDisplay": "displays.fits",
    "ComparisonDisplay": "displays.comparison",
    "certify": "auditing",
    "Certificate": "certificates.certificate",
    "CertificateList": "certificates.certificate",
    "History": "callbacks",
    "Progress": "callbacks",
    "Checkpoint": "callbacks",
    "save_model": "files.models.model",
    "load_model": "files.models.model",
    "read_data": "files.tables.table",
    "open_dataset": "inputs.opening",
    "Dataset": "datasets",
    "permutation_test": "permutations",
    "PermutationTest": "permutations",
    "compare": "comparing.run",
    "Comparison": "comparing.comparison",
    "compare_several": "comparing.several",
    "SeveralComparisons": "comparing.several",
}

# public modules, whose names are not repeated here
_MODULES = ("losses", "paths", "penalties", "stats")

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
