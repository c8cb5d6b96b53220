"""Optional libraries, imported when they are needed."""

from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path
from types import ModuleType

FILES = ("pandas", "pyarrow", "openpyxl")
# libraries of the extras, as pip knows them
EXTRAS = {
    "files": FILES,
    "plot": ("matplotlib",),
    "report": ("matplotlib", "jinja2", "vl-convert-python"),
    "dask": ("dask", "distributed"),
    "onnx": ("skl2onnx",),
}
# file that run.py writes into an environment that it made
RECORD = "run-py.json"


def optional(name: str, use: str, extra: str = "files") -> ModuleType:
    """Import a library of an extra (of `EXTRAS`), or one of its modules; ImportError begins with
    ``use``, what needs it, and has the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise ImportError(
            f"{use} needs {library}, which is not installed: {how_to_install(extra)}"
        ) from error


def how_to_install(extra: str = "files") -> str:
    """The command that installs the libraries of an extra here. It names them: pip would look for
    an extra of this package on the index, even if it was installed from elsewhere."""
    run = Path(__file__).parents[3] / "run.py"
    if (Path(sys.prefix) / RECORD).exists() and run.exists():
        return shlex.join(["python3", str(run), "install", extra])
    return shlex.join(["pip", "install", *EXTRAS[extra]])


def library_of(thing: object) -> str:
    """The library that defines the type of an object: its data may be told apart without import."""
    return type(thing).__module__.partition(".")[0]
