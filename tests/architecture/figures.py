"""How much there is to read: figures of the source, and what one fit meets of it.

``python -m tests.architecture.figures`` prints them; `test_figures` holds them to their budget.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import proxmargin

ROOT = Path(proxmargin.__file__).parent
FILES = tuple(sorted(ROOT.rglob("*.py")))
# rooms of which a number is a tolerance, a size or a count of an algorithm
NUMERICAL = (
    *("compiled", "functions", "optimality", "solvers"),
    *("data/designs", "data/kernels", "models/limits", "models/paths"),
)
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def source_lines() -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in FILES)


def code_lines() -> int:
    """Lines that are neither blank nor comment nor docstring."""
    return sum(len(_code_lines(file)) for file in FILES)


def _code_lines(file: Path) -> set[int]:
    with tokenize.open(file) as source:
        tokens = [t for t in tokenize.generate_tokens(source.readline) if t.type not in NOT_CODE]
    lines = {n for token in tokens for n in range(token.start[0], token.end[0] + 1)}
    return lines - {n for d in _docstrings(file) for n in range(d.lineno, d.end_lineno + 1)}


def _docstrings(file: Path) -> Iterator[Any]:
    for node in ast.walk(parsed(file)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text and isinstance(node.value.value, str):
            yield node


def solver_names() -> int:
    """Solvers by name, without those that only the papers' tables need."""
    from proxmargin.solvers.choice.names import SOLVERS

    modules = {name: getattr(make, "__module__", "") for name, make in SOLVERS.items()}
    return sum(".papers" not in module for module in modules.values())


def rules() -> int:
    from proxmargin.solvers.choice.rules import KERNEL_RULES, PASSES, RULES

    return len({*RULES, *KERNEL_RULES, *PASSES})


def numeric_constants() -> int:
    """Named numbers of modules in the numerical rooms."""
    own = [file for file in FILES if file.relative_to(ROOT).as_posix().startswith(NUMERICAL)]
    return sum(_is_number(node) for file in own for node in _assignments(file))


def _assignments(file: Path) -> Iterator[ast.Assign | ast.AnnAssign]:
    for node in parsed(file).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield node


def _is_number(node: ast.Assign | ast.AnnAssign) -> bool:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    named = isinstance(target, ast.Name) and target.id.strip("_").isupper()
    leaves = [leaf for leaf in ast.walk(node.value or target) if isinstance(leaf, ast.Constant)]
    numbers = (int, float)
    return named and any(isinstance(x.value, numbers) and x.value is not True for x in leaves)


def lines_of_any_type() -> int:
    """Lines that mention `Any`, which a type checker takes for everything."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in FILES)
    return sum(re.search(r"\bAny\b", line) is not None for line in text.splitlines())


def repeated_class_names() -> tuple[str, ...]:
    """Names of classes that two files define."""
    trees = [parsed(file) for file in FILES]
    names = [{n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)} for tree in trees]
    counts = Counter(name for found in names for name in found)
    return tuple(sorted(name for name, count in counts.items() if count > 1))


def walk(call: Callable[[], object]) -> tuple[int, int]:
    """Files and functions of the package that a call meets."""
    met: set[tuple[str, str, int]] = set()
    inside = str(ROOT)

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside):
            met.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len({file for file, *_ in met}), len(met)


def walk_of_a_fit() -> tuple[int, int]:
    """Of the second binary fit of HuberizedSVC, when kernels and modules are loaded."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    model = proxmargin.HuberizedSVC(alpha=0.05, l1_ratio=0.9, standardize=True).fit(X, y)
    return walk(lambda: model.fit(X, y))


def walk_of_a_comparison() -> tuple[int, int]:
    """Of the second comparison of two models, when kernels and modules are loaded."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    models = ["HuberizedSVC", "SVC"]

    def compared() -> object:
        return proxmargin.compare(X[::3], y[::3], models=models, progress=False)

    compared()
    return walk(compared)


if __name__ == "__main__":
    fit, comparison = walk_of_a_fit(), walk_of_a_comparison()
    for name, value in (
        ("source lines", source_lines()),
        ("code lines", code_lines()),
        ("files", len(FILES)),
        ("solver names", solver_names()),
        ("rules", rules()),
        ("numeric constants", numeric_constants()),
        ("lines that mention Any", lines_of_any_type()),
        ("repeated class names", len(repeated_class_names())),
        ("files met by a fit", fit[0]),
        ("functions met by a fit", fit[1]),
        ("files met by a comparison", comparison[0]),
    ):
        print(f"{value:8,}  {name}")
