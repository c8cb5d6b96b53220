"""The models: one entry each, from which all other lists of models are derived.

These are the public names of the package, the models in files, on the command line and in
comparisons, what paths share, and the lists of the tests. Nothing is imported here, because the
package itself reads the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

# values of C, in the order of preference among equal scores
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# nu and kappa as shares of the largest values that the data admit
SHARES = ("0.05max", "0.2max", "0.5max", "0.8max", "0.95max")


class Model(NamedTuple):
    """Facts about a model that are needed before its module is loaded."""

    home: str  # module of `proxmargin.models.classifiers` with its class
    # parameters of its loss and penalty: fits that differ in them alone share their data. A model
    # with ``alpha`` and ``l1_ratio`` has a path
    parameters: tuple[str, ...] = ()
    kernels: bool = False  # whether it takes a ``kernel``
    compared: bool = True  # whether a comparison of all models includes it
    quick: bool = False  # whether a quick comparison does
    # values that a comparison tries, for a model without a path
    grid: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
    strengths: int = 30  # strengths of a path that a comparison tries for each ``l1_ratio``
    composed: bool = False  # whether it holds other classifiers

    @property
    def has_path(self) -> bool:
        return {"alpha", "l1_ratio"} <= set(self.parameters)


NET = ("alpha", "l1_ratio", "penalty_factor", "bounds")
BY_C: dict[str, Any] = {"parameters": ("C",), "kernels": True, "grid": {"C": STRENGTHS}}
BY_NU: dict[str, Any] = {"parameters": ("nu",), "kernels": True}
BY_KAPPA: dict[str, Any] = {"parameters": ("kappa",), "kernels": True, "grid": {"kappa": SHARES}}

MODELS: Mapping[str, Model] = {
    "HuberizedSVC": Model("elastic_net", (*NET, "delta", "intercept_ridge"), quick=True),
    "ElasticNetSVC": Model("elastic_net", NET, strengths=15),  # fits take ten times as long
    "SquaredHingeSVC": Model("elastic_net", NET, quick=True),
    "SparseLogisticRegression": Model("elastic_net", NET, quick=True),
    "MulticlassSVC": Model("multiclass", ("C",), grid={"C": (0.01, 0.03, 0.1, 0.3, 1.0)}),
    "MarginClassifier": Model("custom", compared=False),
    "SVC": Model("regularized", **BY_C),
    "L2SVC": Model("regularized", quick=True, **BY_C),
    "LogisticRegression": Model("regularized", quick=True, **BY_C),
    "NuSVC": Model("nu_dwd", grid={"nu": SHARES}, **BY_NU),
    "DWD": Model("nu_dwd", **BY_NU),
    "MarginFDA": Model("minimax", **BY_KAPPA),
    "MarginMPM": Model("minimax", **BY_KAPPA),
    "DDAGClassifier": Model("ddag", compared=False, composed=True),
}


# the classifiers that choose their strength by cross-validation, with their plain classifiers
CROSS_VALIDATED: Mapping[str, str] = {
    f"{name}CV": name
    for name in (
        "HuberizedSVC",
        "ElasticNetSVC",
        "SquaredHingeSVC",
        "SparseLogisticRegression",
        "MulticlassSVC",
        "SVC",
        "LogisticRegression",
    )
}


def model_names(*, kernels: bool | None = None) -> tuple[str, ...]:
    """Names of the models that hold no others; with ``kernels`` of those that (do not) take one."""
    own = {name: model for name, model in MODELS.items() if not model.composed}
    return tuple(name for name, model in own.items() if kernels in (None, model.kernels))
