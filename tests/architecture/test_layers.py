"""Imports go one way and are cheap; every name resolves; every module says what it is."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import proxmargin

ROOT = Path(proxmargin.__file__).parent
MODULES = {
    ".".join(("proxmargin", *path.relative_to(ROOT).with_suffix("").parts)): path
    for path in sorted(ROOT.rglob("*.py"))
}

# from the bottom up: a module imports from its own layer and from those below it
LAYERS = (
    ("traits", "rows", "rounding", "magnitudes", "runtime", "compiled", "projections", "stats"),
    ("losses", "penalties", "datasets", "designs", "kernels"),
    ("problem", "composite", "unpenalised"),
    ("certificates",),
    ("loop",),
    ("solvers", "callbacks", "resuming"),
    ("inputs",),
    ("limits",),
    ("estimators", "paths"),
    ("selection", "permutations", "auditing"),
    ("displays", "reports"),
    ("comparing", "files"),
    ("cli", "__main__"),
)
# what the families of solvers may import of `solvers` besides their own files
SHARED = (
    "interior",
    "batched_labels",
    "hinge_terms",
    "linear_algebra",
    "line_search",
    "working_set",
)
# families of solvers: none knows another; the papers' methods and the wrappers know them, and
# `names` and `auto` all
FAMILIES = ("smooth", "augmented", "box", "programs", "minimax")
TOP = "__init__"
HEAVY = ("numba", "sklearn", "pandas", "matplotlib", "dask", "scipy", "pyarrow", "rich")


def layer_of(module: str) -> int:
    """The layer of ``proxmargin.a.b``: that of its longest listed beginning."""
    name = module.removeprefix("proxmargin.")
    found = {
        len(part): depth
        for depth, layer in enumerate(LAYERS)
        for part in layer
        if name == part or name.startswith(part + ".")
    }
    assert found, f"{module} belongs to no layer: place it in LAYERS"
    return found[max(found)]


def only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs, those inside functions included."""
    for node in ast.iter_child_nodes(tree):
        if not only_for_types(node):
            yield node
            yield from statements(node)


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports(module: str) -> frozenset[str]:
    """Full names of what a file imports, wherever in it."""
    return frozenset(_imports(module))


def _imports(module: str) -> Iterator[str]:
    package = module.removesuffix(".__init__")
    for node in statements(parsed(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert node.module is not None
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES or f"{whole}.__init__" in MODULES else node.module
        elif isinstance(node, ast.ImportFrom):
            pytest.fail(f"{package}: relative import on line {node.lineno}; write the full name")


def test_every_file_imports_only_from_its_own_layer_or_below() -> None:
    upward = {
        (module, target)
        for module in MODULES
        if module != f"proxmargin.{TOP}"
        for target in targets_of(module)
        if layer_of(target) > layer_of(module.removesuffix(".__init__"))
    }
    assert upward == set()


def targets_of(module: str) -> set[str]:
    own = {t for t in imports(module) if t.startswith("proxmargin.")}
    return {target.removesuffix(".__init__") for target in own} - {module.removesuffix(".__init__")}


def test_no_file_imports_itself_by_way_of_others() -> None:
    graph = {module.removesuffix(".__init__"): targets_of(module) for module in MODULES}
    TopologicalSorter(graph).prepare()


def test_no_file_does_for_its_types_either() -> None:
    names = {module.removesuffix(".__init__") for module in MODULES}
    graph = {
        module.removesuffix(".__init__"): {
            target
            for node in ast.walk(parsed(module))
            if isinstance(node, ast.ImportFrom) and node.module in names
            for alias in node.names
            for whole in [f"{node.module}.{alias.name}"]
            for target in [whole if whole in names else node.module]
            if target != module.removesuffix(".__init__")
        }
        for module in MODULES
        if not module.endswith(f".{TOP}")
    }
    graph["proxmargin.unpenalised"].discard("proxmargin.problem")  # the problem asks it for points
    TopologicalSorter(graph).prepare()


def test_a_family_of_solvers_imports_no_other() -> None:
    own = [f"proxmargin.solvers.{family}." for family in FAMILIES]
    guilty = {
        module: others
        for home in own
        for module in MODULES
        if module.startswith(home)
        if (
            others := [
                t
                for t in targets_of(module)
                if t.startswith("proxmargin.solvers.")
                and not t.startswith((home, *(f"proxmargin.solvers.{tool}" for tool in SHARED)))
            ]
        )
    }
    assert guilty == {}


def test_the_package_itself_imports_the_table_of_models_alone_which_imports_nothing() -> None:
    table = "proxmargin.estimators.registry"
    assert targets_of("proxmargin.__init__") == {table}
    assert targets_of(table) == targets_of("proxmargin.estimators.__init__") == set()


def test_only_compiled_imports_numba() -> None:
    guilty = [
        module
        for module in MODULES
        if not module.startswith("proxmargin.compiled")
        and any(target.split(".")[0] == "numba" for target in imports(module))
    ]
    assert guilty == []


def test_kernels_are_kept_by_the_cache_of_the_package() -> None:
    own = "proxmargin.compiled.cache"
    guilty = [
        module
        for module in MODULES
        for node in ast.walk(parsed(module))
        if module != own and isinstance(node, ast.ImportFrom) and node.module == "numba"
        if {alias.name for alias in node.names} & {"jit", "njit", "vectorize", "guvectorize"}
    ]
    assert guilty == [], f"import njit from {own}"


def test_losses_and_penalties_and_solvers_see_no_scikit_learn() -> None:
    guilty = [
        module
        for module in MODULES
        if module != "proxmargin.__init__"
        and layer_of(module.removesuffix(".__init__")) < layer_of("proxmargin.inputs.targets")
        and any(target.split(".")[0] == "sklearn" for target in imports(module))
    ]
    assert guilty == []


def run_python(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return result.stdout


def test_importing_the_package_is_quick_and_loads_nothing_heavy() -> None:
    code = (
        "import json, sys, time; start = time.perf_counter(); import proxmargin; dir(proxmargin); "
        "print(json.dumps([time.perf_counter() - start, list(sys.modules)]))"
    )
    seconds, modules = json.loads(run_python(code))
    loaded = {module.split(".")[0] for module in modules}
    assert loaded.isdisjoint(HEAVY)
    assert seconds < 1.0


def test_the_estimators_load_neither_plots_nor_terminal_tables() -> None:
    code = (
        "import json, sys; from proxmargin import HuberizedSVC; "
        "print(json.dumps(list(sys.modules)))"
    )
    loaded = {module.split(".")[0] for module in json.loads(run_python(code))}
    assert loaded.isdisjoint({"matplotlib", "dask", "rich", "polars"})


def test_every_public_name_resolves() -> None:
    listed = set(dir(proxmargin))
    found = {name for name in proxmargin.__all__ if getattr(proxmargin, name) is not None}
    assert found == set(proxmargin.__all__) <= listed


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        proxmargin.no_such_name  # noqa: B018


def test_every_file_says_what_it_is() -> None:
    firsts = {
        module: (ast.get_docstring(parsed(module)) or "").strip().split("\n")[0]
        for module in MODULES
    }
    assert [module for module, first in firsts.items() if not first.endswith((".", "?", ":"))] == []


def test_every_name_a_file_lists_exists() -> None:
    loaded = {
        module: importlib.import_module(module.removesuffix(".__init__"))
        for module in MODULES
        if "__main__" not in module
    }
    missing = {
        (module, name)
        for module, here in loaded.items()
        for name in getattr(here, "__all__", [])
        if not hasattr(here, name)
    }
    assert missing == set()
