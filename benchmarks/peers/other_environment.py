"""`python -m benchmarks environment`: install the packages that need an environment of their own.

adelie needs NumPy 1, and so cannot share one with this project; glum keeps it company. The folder
is `.venv-peers` beside the sources, or the one that PROXMARGIN_PEERS_VENV names.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent / "other_environment.txt"
FOLDER = Path(__file__).resolve().parents[2] / ".venv-peers"


def options(parser: argparse.ArgumentParser) -> None:
    pass


def main(arguments: argparse.Namespace) -> int:
    subprocess.run([sys.executable, "-m", "venv", str(folder())], check=True)
    install = ["-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS)]
    return subprocess.run([str(python()), *install]).returncode


def folder() -> Path:
    return Path(os.environ.get("PROXMARGIN_PEERS_VENV") or FOLDER).expanduser().absolute()


def python() -> Path:
    return folder() / "bin" / "python"


@cache
def version(package: str) -> str:
    """Of an installed package; empty where there is none."""
    if not python().exists():
        return ""
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([str(python()), "-c", asked], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""
