#!/usr/bin/env python3
"""Run proxmargin from a checkout; the first run makes a virtual environment for it.

    python3 run.py compare DATA ...         any proxmargin command with its arguments
    python3 run.py test                     the tests, without the slow ones
    python3 run.py test --all               every test; pytest's own arguments pass through too
    python3 run.py build                    compile the kernels ahead of time: some minutes, once
    python3 run.py lint                     ruff and mypy
    python3 run.py docs                     the site of the documentation, in build/docs
    python3 run.py bench ...                python -m benchmarks ...
    python3 run.py install [EXTRA ...]      only install (default: cli)
    python3 run.py lock | audit             the versions in requirements/ | their advisories

Needs Python 3.11 or newer and nothing else. The environment is the folder .venv beside this file,
or the one that PROXMARGIN_VENV names; deleting it is always safe. pip's settings (pip.conf, PIP_*)
apply; PROXMARGIN_REQUIREMENTS=requirements/lock.txt installs what this lists, by hash.
"""

import fcntl
import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("run.py: proxmargin needs Python 3.11 or newer; type: python3.11 run.py ...")

ROOT = Path(__file__).resolve().parent
VENV = Path(os.environ.get("PROXMARGIN_VENV") or ROOT / ".venv").expanduser().absolute()
PYTHON = VENV / "bin" / "python"
LISTED = os.environ.get("PROXMARGIN_REQUIREMENTS")
BUILD = "proxmargin.compiled.build"
BUILD_NEEDS = ("numpy", "scipy", "joblib")  # and Numba
RECORD = "run-py.json"  # in the environment: what is installed; not there while that changes
# the pip that is fetched where Python comes without one, as Debian's does
PIP_WHEEL = "pip-25.0.1-py3-none-any.whl"
PIP_SHA256 = "c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f"
ASTRAY = {"PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_QUIET"}
CLEAN = {name: value for name, value in os.environ.items() if name not in ASTRAY}  # for pip
CLEAN["PROXMARGIN_KERNELS"] = "none"  # pip compiles no kernels, as `begin_kernels` does so
VERBS = {  # the extras that each needs, and the modules it runs: its arguments are for the last
    "test": ("test", BUILD, "pytest -n auto --maxprocesses 8 --dist worksteal"),
    "build": ("cli", BUILD),
    "lint": ("cli lint", "ruff check", "mypy"),
    "docs": ("docs", BUILD, "sphinx -W --keep-going -q -j 2 docs build/docs"),
    "bench": ("bench", BUILD, "benchmarks"),
    "lock": ("audit", "requirements.lock"),
    "audit": ("audit", "requirements.audit"),
}


def main(name: str, *rest: str) -> None:
    if name in ("-h", "--help"):
        print(__doc__.strip())
    elif name == "install":
        provide(*(rest or ["cli"]))
    elif name in VERBS:
        extras, *first, last = VERBS[name]
        provide(*extras.split())
        os.chdir(ROOT)
        if any(subprocess.call([PYTHON, "-m", *module.split()]) for module in first):
            sys.exit(1)
        if name == "test":
            chosen = [] if "--all" in rest else ["-m", "not slow"]
            rest = (*chosen, *(word for word in rest if word != "--all"))
        os.execv(PYTHON, [PYTHON, "-m", *last.split(), *rest])
    else:
        reports = name == "report" or any(word.startswith("--rep") for word in rest)
        provide("cli", *(["report"] if reports else []))
        program = VENV / "bin" / "proxmargin"
        os.execv(program, [program, name, *rest])


def begin_kernels() -> subprocess.Popen:
    """Compile the kernels of a first comparison while the rest is installed."""
    import tomllib  # not there in the versions that are refused above

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    numba = project["optional-dependencies"]["custom"]
    install(*numba, *(each for each in project["dependencies"] if each.startswith(BUILD_NEEDS)))
    command = [PYTHON, "-m", BUILD, "--first"]
    return subprocess.Popen(command, env={**CLEAN, "PYTHONPATH": str(ROOT / "src")})


def provide(*extras: str) -> None:
    """Return once the project is installed with these extras."""
    file = VENV / RECORD
    with open(__file__) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run.py may be installing
        record = json.loads((file.exists() and file.read_text()) or '{"extras": []}')
        if record.get("state") == state() and set(extras) <= set(record["extras"]):
            return
        file.unlink(missing_ok=True)
        if not succeeds(PYTHON, "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"):
            create()
        wanted = sorted({*extras, *record["extras"], "custom"})
        print("installing what it needs: a few hundred MB to download, once", file=sys.stderr)
        project = ["--editable", f"{ROOT}[{','.join(wanted)}]"]
        if LISTED:
            install("--require-hashes", "-r", LISTED)
            install("--no-index", "--no-build-isolation", *project)  # what the file lacks fails
        else:
            building = begin_kernels()
            install(*project)
            building.wait()  # if it failed, it said why, and kernels are compiled on first use
        file.write_text(json.dumps({"state": state(), "extras": wanted}))


def state() -> str:
    """What an install depends on: a difference means installing again."""
    files = [ROOT / "pyproject.toml", *filter(None, [LISTED])]
    parts = [VENV, ROOT, PYTHON.resolve(), *(Path(file).read_text() for file in files)]
    return hashlib.sha256(str(parts).encode()).hexdigest()


def create() -> None:
    """Make the environment, anew where what is there does not work."""
    if VENV.exists() and os.listdir(VENV) and not (VENV / "pyvenv.cfg").exists():
        sys.exit(f"run.py: {VENV} is no virtual environment: set PROXMARGIN_VENV to another folder")
    print(f"creating {VENV}", file=sys.stderr)
    venv, wheel = [sys.executable, "-m", "venv", "--clear"], VENV / PIP_WHEEL
    if not succeeds(*venv, VENV) and not (
        succeeds(*venv, "--without-pip", VENV)
        and fetch_pip(wheel)
        and succeeds(PYTHON, wheel / "pip", "install", "--no-index", wheel)
    ):
        sys.exit(f"run.py: cannot make {VENV}; on Debian, type: sudo apt-get install python3-venv")


def fetch_pip(wheel: Path) -> bool:
    """Bring a pip of known checksum from the package index."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/pip/"
    secure = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
    page = urllib.request.urlopen(index, timeout=60, context=secure).read().decode()
    link = re.search(rf'href="([^"#]*{re.escape(PIP_WHEEL)})', page)[1]
    address = urllib.parse.urljoin(index, link)
    wheel.write_bytes(urllib.request.urlopen(address, timeout=60, context=secure).read())
    return hashlib.sha256(wheel.read_bytes()).hexdigest() == PIP_SHA256


def install(*words: str) -> None:
    if not succeeds(PYTHON, "-m", "pip", "install", "--no-input", *words):
        sys.exit("run.py: pip could not install proxmargin; the end of what it said is above")


def succeeds(*command: object) -> bool:
    try:
        done = subprocess.run(command, stdin=-3, stdout=-1, stderr=-2, text=True, env=CLEAN)
    except OSError:
        return False
    if done.returncode:
        print(*done.stdout.splitlines()[-12:], sep="\n", file=sys.stderr)
    return done.returncode == 0


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["--help"]))
