"""Files of results: Markdown with the command and the machine above it, a file a section."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import proxmargin

RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = (
    *("proxmargin", "numpy", "scipy", "numba", "scikit-learn", "skglm", "clarabel", "highspy"),
    *("liblinear-official", "libsvm-official", "celer", "rehline", "snapml"),
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; numbers to the right, the first column to the left."""
    lines = [_row(head), "|" + "|".join([":--"] + ["--:"] * (len(head) - 1)) + "|"]
    return "\n".join(lines + [_row(row) for row in rows])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def seconds(value: float) -> str:
    """Three significant digits, plain."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}" if value >= 0.1 else f"{value:.4f}"


def circumstances(threads: int = 1, run: str | None = None) -> str:
    """The command, that of this process if not given, the machine and the versions, a bullet
    each."""
    each = "one thread" if threads == 1 else f"{threads} threads"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return "\n".join(
        [
            f"- Command: `{run or command()}`",
            f"- Machine: {_processor()}, {os.cpu_count()} cores, {platform.system()};"
            f" every solver on {each}; load average when written {load}.",
            f"- Versions: Python {platform.python_version()}, {_versions()}.",
        ]
    )


def command() -> str:
    return shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions() -> str:
    return ", ".join(f"{name} {_version(name)}" for name in PACKAGES)


def _version(package: str) -> str:
    if package == "proxmargin":  # the checkout, whatever was the version when it was installed
        return f"{proxmargin.__version__} ({_commit()})"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """The commit of the checkout, with a plus sign where the library differs from it."""
    root = RESULTS.parents[1]
    try:
        name = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "src")
    except (OSError, subprocess.CalledProcessError):
        return "no commit known"
    return name + ("+" if changed else "")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def write_section(
    name: str, title: str, body: str, folder: Path = RESULTS, threads: int = 1
) -> None:
    """Write `name`.md into the folder, in place of what an earlier run wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"# {title}\n\n{circumstances(threads)}\n\n{body.strip()}\n"
    (folder / f"{name}.md").write_text(text)
