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
from tests.architecture.figures import parsed

ROOT = Path(proxmargin.__file__).parent
MODULES = {
    ".".join(("proxmargin", *path.relative_to(ROOT).with_suffix("").parts)): path
    for path in sorted(ROOT.rglob("*.py"))
}

# rooms from the bottom up: a module imports from its own room and from those below it
ROOMS = (
    "compiled",
    "runtime",
    "functions",
    "data",
    "optimality",
    "solvers",
    "models",
    "files",
    "studies",
    "cli",
)
# public import paths of what lives in a room, which no file of the package uses
PUBLIC = ("losses", "paths", "penalties", "reports", "stats")
# folders of solvers that are no families: a family imports the lower ones and its own files
BELOW_FAMILIES = ("loop", "shared", "interior")
ABOVE_FAMILIES = ("callbacks", "resuming", "papers", "wrappers", "choice")
HEAVY = ("numba", "sklearn", "pandas", "matplotlib", "dask", "scipy", "pyarrow", "rich")


def room_of(module: str) -> str:
    return module.split(".")[1]


def only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def statements(tree: ast.AST, with_types: bool) -> Iterator[ast.AST]:
    """Every node, those inside functions included; `with_types` also what only type checkers
    run."""
    for node in ast.iter_child_nodes(tree):
        if with_types or not only_for_types(node):
            yield node
            yield from statements(node, with_types)


@cache
def imports(module: str, with_types: bool = False) -> frozenset[str]:
    """Full names of what a file imports, wherever in it."""
    return frozenset(_imports(module, with_types))


def _imports(module: str, with_types: bool) -> Iterator[str]:
    package = module.removesuffix(".__init__")
    for node in statements(parsed(MODULES[module]), with_types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert node.module is not None
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES or f"{whole}.__init__" in MODULES else node.module
        elif isinstance(node, ast.ImportFrom):
            pytest.fail(f"{package}: relative import on line {node.lineno}; write the full name")


def targets_of(module: str, with_types: bool = False) -> set[str]:
    own = {t for t in imports(module, with_types) if t.startswith("proxmargin.")}
    return {target.removesuffix(".__init__") for target in own} - {module.removesuffix(".__init__")}


def in_rooms() -> Iterator[tuple[str, str]]:
    """The imports between files in rooms, those for types included."""
    for module in MODULES:
        if room_of(module) in ROOMS:
            for target in targets_of(module, with_types=True):
                yield module.removesuffix(".__init__"), target


def test_every_file_is_in_a_room() -> None:
    loose = {module for module in MODULES if room_of(module) not in ROOMS}
    expected = {*PUBLIC, "__init__", "__main__"}
    assert loose == {f"proxmargin.{name}" for name in expected}


def test_every_file_imports_only_from_its_own_room_or_below() -> None:
    upward = {
        (module, target)
        for module, target in in_rooms()
        if room_of(target) not in ROOMS
        or ROOMS.index(room_of(target)) > ROOMS.index(room_of(module))
    }
    assert upward == set()


def test_no_file_imports_itself_by_way_of_others_nor_for_its_types() -> None:
    graph: dict[str, set[str]] = {}
    for module, target in in_rooms():
        graph.setdefault(module, set()).add(target)
    TopologicalSorter(graph).prepare()


def folder_of(module: str) -> str:
    return "/".join(module.split(".")[1:3])


def test_no_folder_of_a_room_imports_itself_by_way_of_its_neighbours() -> None:
    graph: dict[str, set[str]] = {}
    for module, target in in_rooms():
        here, there = folder_of(module), folder_of(target)
        if here != there and all((ROOT / folder).is_dir() for folder in (here, there)):
            graph.setdefault(here, set()).add(there)
    TopologicalSorter(graph).prepare()


def test_a_family_of_solvers_imports_no_other() -> None:
    folders = {path.name for path in (ROOT / "solvers").iterdir() if path.is_dir()}
    families = folders - {*BELOW_FAMILIES, *ABOVE_FAMILIES, "__pycache__"}
    guilty = {
        (module, target)
        for module, target in in_rooms()
        if folder_of(module) in {f"solvers/{family}" for family in families}
        if room_of(target) == "solvers"
        and folder_of(target) != folder_of(module)
        and target.split(".")[2] not in BELOW_FAMILIES
    }
    assert guilty == set()


def test_the_package_itself_imports_the_table_of_models_alone_which_imports_nothing() -> None:
    table = "proxmargin.models.fitting.registry"
    assert targets_of("proxmargin.__init__") == {table}
    assert targets_of(table) == targets_of("proxmargin.models.fitting.__init__") == set()


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
        for node in ast.walk(parsed(MODULES[module]))
        if module != own and isinstance(node, ast.ImportFrom) and node.module == "numba"
        if {alias.name for alias in node.names} & {"jit", "njit", "vectorize", "guvectorize"}
    ]
    assert guilty == [], f"import njit from {own}"


def test_losses_and_penalties_and_solvers_see_no_scikit_learn() -> None:
    guilty = [
        module
        for module in MODULES
        if module != "proxmargin.__init__"
        and room_of(module) in ("compiled", "functions", "optimality", "solvers")
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
        module: (ast.get_docstring(parsed(MODULES[module])) or "").strip().split("\n")[0]
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
