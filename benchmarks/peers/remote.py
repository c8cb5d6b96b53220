"""Packages that do not run in this Python: a process of theirs for a data set, and how to ask it.

A server (`servers/`) reads the data once, from raw files in a folder that both sides know, then a
command a line: a name and `key=value` words. Vectors travel as raw files of float64. It answers
each command with a line, `wall cpu` in seconds of the solving alone, by its own clock and the mean
of as many times as asked for (`times`), or `trouble` and why, and ends when its input does.

R is the `Rscript` on the path. What needs other versions of NumPy than this project has an
environment of its own (`other_environment`).
"""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csc_matrix, issparse

from benchmarks.datasets import Design
from benchmarks.objective import Floats, Logistic, Problem
from benchmarks.peers import other_environment
from benchmarks.peers.base import DECADES

SERVERS = Path(__file__).resolve().parent / "servers"
DECADES_OF_CHANGE = tuple(10.0**-k for k in range(4, 21))
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


class Home(Protocol):
    """Where a package lives: the command of a server there, and what of it is missing."""

    def command(self, script: str) -> list[str]: ...
    def missing(self, package: str) -> str: ...


@dataclass(frozen=True)
class R:
    """The R of the machine with its packages."""

    def command(self, script: str) -> list[str]:
        return ["Rscript", str(SERVERS / script)]

    def missing(self, package: str) -> str:
        """Why there is no such package; empty where there is one."""
        if shutil.which("Rscript") is None:
            return "Rscript is not installed"
        return "" if _version_in_r(package) else f"the R package {package} is not installed"

    def version(self, package: str) -> str:
        return _version_in_r(package)


@cache
def _version_in_r(package: str) -> str:
    """Empty where it is not installed."""
    if shutil.which("Rscript") is None:
        return ""
    asked = f'cat(as.character(packageVersion("{package}")))'
    done = subprocess.run(["Rscript", "-e", asked], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True)
class OtherPython:
    """The environment of `other_environment`."""

    def command(self, script: str) -> list[str]:
        return [str(other_environment.python()), "-E", str(SERVERS / script)]

    def missing(self, package: str) -> str:
        """Why there is no such package; empty where there is one."""
        if other_environment.version(package):
            return ""
        return f"{package} is not installed; python -m benchmarks environment does it"

    def version(self, package: str) -> str:
        return other_environment.version(package)


class RemoteDesign:
    """A server that holds the data; it ends, and its folder goes, when nobody refers to this."""

    def __init__(self, command: list[str], design: Design) -> None:
        self.shape = design.shape
        self._folder = Path(tempfile.mkdtemp(prefix="proxmargin-peer-"))
        self._server = subprocess.Popen(
            [*command, str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=_die_with_parent,  # a worker that is late is killed, and knows no more
        )
        weakref.finalize(self, _end, self._server, self._folder)
        self._load(design)

    def ask(self, name: str, **words: Any) -> tuple[float, float]:
        """The (wall, CPU) seconds of a command, or its trouble as a `RuntimeError`."""
        line = " ".join([name, *(f"{key}={value}" for key, value in words.items())])
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(line + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        match answer.split(maxsplit=1):
            case ["trouble", why]:
                raise RuntimeError(why.strip())
            case [wall, cpu]:
                return float(wall), float(cpu)
        raise RuntimeError(f"the server ended with the answer {answer!r}")

    def write(self, name: str, values: Any) -> None:
        """A raw file for the server, in column-major order."""
        (self._folder / name).write_bytes(np.asarray(values).tobytes(order="F"))

    def read(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A raw file of the server in row-major order, which is removed."""
        path = self._folder / name
        found = np.fromfile(path).reshape(shape)
        path.unlink()
        return found

    def _load(self, design: Design) -> None:
        rows, columns = design.shape
        if issparse(design):
            stored = csc_matrix(design)
            self.write("data", stored.data)
            self.write("indices", stored.indices.astype(np.int32))
            self.write("indptr", stored.indptr.astype(np.int32))
            self.ask("sparse", rows=rows, columns=columns, stored=stored.nnz)
        else:
            self.write("design", design)
            self.ask("dense", rows=rows, columns=columns)


@dataclass(frozen=True)
class RemotePackage:
    """A package of paths of the logistic loss; `words` are settings that are the same always."""

    name: str
    package: str
    home: Home
    script: str
    ladder: tuple[float, ...]
    words: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""

    @property
    def missing(self) -> str:
        return self.home.missing(self.package)

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, Logistic):
            return "logistic only"
        return "no ridge on the intercept" if problem.intercept_ridge > 0.0 else None

    def prepared(self, design: Design) -> RemoteDesign:
        return RemoteDesign(self.home.command(self.script), design)

    def asked(self, command: str, path: Any, setting: float, **more: Any) -> tuple[float, float]:
        """The seconds of a command for the strengths of a path."""
        path.design.write("labels", (path.labels + 1.0) / 2.0)
        path.design.write("alphas", path.alphas)
        return path.design.ask(
            command,
            l1_ratio=path.l1_ratio,
            alphas=len(path.alphas),
            tol=setting,
            intercept=int(path.fit_intercept),
            **self.words,
            **more,
        )


# glmnet and adelie stop at a change of the objective, which is quadratic in that of coefficients
PACKAGES = (
    *(
        RemotePackage(
            name, "glmnet", R(), "glmnet.R", DECADES_OF_CHANGE, {"newton": f"{kind}Newton"}
        )
        for name, kind in (("glmnet", ""), ("glmnet-modified", "modified."))
    ),
    RemotePackage("adelie", "adelie", OtherPython(), "serve_adelie.py", DECADES_OF_CHANGE),
    RemotePackage("glum", "glum", OtherPython(), "serve_glum.py", DECADES),
)


def _die_with_parent() -> None:
    """On Linux; elsewhere a server that computes ends after its answer."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)


def _end(server: subprocess.Popen[str], folder: Path) -> None:
    server.kill()
    server.wait()
    for pipe in (server.stdin, server.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    shutil.rmtree(folder, ignore_errors=True)


def versions() -> str:
    """Of the packages here, in words."""
    found = {one.package: one.home.version(one.package) for one in PACKAGES}
    return ", ".join(f"{name} {number or 'not installed'}" for name, number in found.items())
