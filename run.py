#!/usr/bin/env python3
"""Run proxmargin from a checkout; the first run makes a virtual environment for it.

    python3 run.py compare breast_cancer --jobs -1 --report report.html
                                            any proxmargin command with its arguments
    python3 run.py test                     the tests, without the slow ones
    python3 run.py test --all               every test; pytest's own arguments pass through too
    python3 run.py lint                     ruff and mypy
    python3 run.py bench ...                python -m benchmarks ..., or bench path/to/script.py ...
    python3 run.py install [EXTRA ...]      only install, anew if need be (default: cli)
    python3 run.py lock                     the versions in requirements/, after pyproject.toml
    python3 run.py audit                    advisories, licences and a bill of materials

Needs Python 3.11 or newer and nothing else. The environment is the folder .venv beside this file,
or the one that PROXMARGIN_VENV names; deleting it is always safe. pip's settings (pip.conf, PIP_*)
apply. With PROXMARGIN_REQUIREMENTS=requirements/lock.txt exactly the files that this lists by hash
are installed. compare and the like run where you are, the others in the project's folder.
"""

import configparser
import contextlib
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:
    sys.exit('run.py: this is for Linux and macOS; here, type: pip install -e ".[cli]"')

# This file keeps to the grammar of Python 3.6, so that older Pythons get as far as this sentence.
if sys.version_info < (3, 11):  # noqa: UP036
    newer = [name for name in ("python3.13", "python3.12", "python3.11") if shutil.which(name)]
    sys.exit(
        "run.py: proxmargin needs Python 3.11 or newer, and this is {}.{} ({}).{}".format(
            sys.version_info[0],
            sys.version_info[1],
            sys.executable,
            f" Type: {newer[0]} run.py ..." if newer else "",
        )
    )

ROOT = Path(__file__).resolve().parent
DOWNLOAD_MB = {
    "": 125,
    "cli": 190,
    "report": 225,
    "test": 365,
    "bench": 190,
    "lint": 215,
    "audit": 160,
}
LOCK = Path("requirements", "lock.txt")
MOST_TEST_WORKERS = 8  # each holds its own compiled functions: about 400 MB

# The pip that is fetched where Python came without one and nothing on the machine can supply it.
PIP_WHEEL = "pip-25.0.1-py3-none-any.whl"
PIP_SHA256 = "c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f"


def main(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(0 if arguments else 2)
    name, *rest = arguments
    location = os.environ.get("PROXMARGIN_VENV") or ROOT / ".venv"
    environment = Environment(Path(os.path.abspath(os.path.expanduser(location))))
    tasks = {
        "test": run_tests,
        "lint": run_linters,
        "bench": run_benchmarks,
        "install": install,
        "lock": run_lock,
        "audit": run_audit,
    }
    if name in tasks:
        tasks[name](environment, rest)
    else:
        environment.provide("cli", *(["report"] if wants_report(arguments) else []))
        environment.become("proxmargin", *arguments)


def wants_report(arguments: list[str]) -> bool:
    """Whether a command writes a report, which needs libraries of its own."""
    return arguments[0] == "report" or any(
        word.startswith("--rep") and "--report".startswith(word.split("=")[0]) for word in arguments
    )


def install(environment: "Environment", arguments: list[str]) -> None:
    environment.provide(*(arguments or ["cli"]), afresh=True)
    say(f"{environment.path} is ready")


def run_tests(environment: "Environment", arguments: list[str]) -> None:
    environment.provide("test")
    os.chdir(ROOT)
    options = [] if "--all" in arguments else ["-m", "not slow"]
    arguments = [argument for argument in arguments if argument != "--all"]
    workers = min(cores(), MOST_TEST_WORKERS)
    if workers > 1 and "--pdb" not in arguments:
        # Neighbours need the same kernels: a process takes them in runs as long as can be.
        options += ["-n", str(workers), "--dist", "worksteal"]
        # One process a core already: threads inside each would only take turns.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_kernels()
    # every worker would rewrite and compile all tests anew, which takes longer than to collect them
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.become("python", "-m", "pytest", *options, *arguments)


def keep_kernels() -> None:
    """Compiled kernels among the caches of the user: checkouts with the same ones share them."""
    place = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    place = os.path.join(place, "proxmargin")
    with contextlib.suppress(OSError):
        os.makedirs(place, mode=0o755, exist_ok=True)
        if os.access(place, os.W_OK):
            os.environ.setdefault("NUMBA_CACHE_DIR", place)


def run_linters(environment: "Environment", arguments: list[str]) -> None:
    environment.provide("cli", "lint")
    os.chdir(ROOT)
    checks = [["ruff", "check", *(arguments or ["."])], ["mypy", *arguments]]
    statuses = [environment.call("python", "-m", *check) for check in checks]
    sys.exit(max(statuses))


def run_benchmarks(environment: "Environment", arguments: list[str]) -> None:
    environment.provide("bench")
    os.chdir(ROOT)
    is_script = bool(arguments) and arguments[0].endswith(".py")
    environment.become("python", *([] if is_script else ["-m", "benchmarks"]), *arguments)


def run_lock(environment: "Environment", arguments: list[str]) -> None:
    environment.provide("audit")
    environment.become("python", str(ROOT / "requirements" / "lock.py"), *arguments)


def run_audit(environment: "Environment", arguments: list[str]) -> None:
    environment.provide("audit")
    environment.become("python", str(ROOT / "requirements" / "audit.py"), *arguments)


class Environment:
    """A virtual environment, and beside it a record of who made it and what is installed.

    The record says "complete" only between a finished install and the start of the next one, so
    whatever kills an install, the next run knows.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.python = path / "bin" / "python"
        self.record_file = path / "run-py.json"
        self.lock_file = path / "run-py.lock"
        self.log_file = path / "run-py.log"

    def provide(self, *extras: str, afresh: bool = False) -> None:
        """Return once the project is installed here with these extras."""
        if self.has(extras) and not afresh:
            return
        with self.locked():
            if afresh or not self.has(extras):  # whoever held the lock may have done it
                self.build(extras)

    def become(self, program: str, *arguments: str) -> None:
        """Replace this process by a program of the environment."""
        sys.stdout.flush()
        executable = str(self.path / "bin" / program)
        os.execv(executable, [executable, *arguments])

    def call(self, program: str, *arguments: str) -> int:
        return subprocess.call([self.path / "bin" / program, *arguments])

    # What is there

    def record(self) -> dict:
        try:
            return json.loads(self.record_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def has(self, extras: tuple[str, ...]) -> bool:
        record = self.record()
        return (
            record.get("complete", False)
            and set(extras) <= set(record["extras"])
            and self.circumstances().items() <= record.items()
            and self.python.exists()
        )

    def circumstances(self) -> dict:
        """What an install depends on: a difference means installing again."""
        return {
            "pyproject": digest(ROOT / "pyproject.toml"),
            "requirements": requirements() and digest(requirements()),
            "project": str(ROOT),
            "venv": str(self.path),
            "interpreter": os.path.realpath(self.python),  # differs after a system upgrade
        }

    def works(self) -> bool:
        """Whether Python and pip run here; an environment of an old Python is left alone."""
        probe = "import sys, pip; print(sys.version_info >= (3, 11))"
        try:
            answer = subprocess.run(
                [self.python, "-c", probe], capture_output=True, text=True, env=clean_environ()
            )
        except OSError:
            return False
        if answer.stdout.strip() == "False":
            fail(
                f"{self.path} holds a Python older than 3.11. Delete that folder, or set "
                "PROXMARGIN_VENV to another one."
            )
        return answer.returncode == 0

    # Making it

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock; pip inherits it, so even one that outlives this script is waited for."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = open(self.lock_file, "w")  # noqa: SIM115
        except OSError as error:
            fail(
                f"cannot write to {self.path} ({error.strerror}). Set PROXMARGIN_VENV to a folder "
                "that you may write to."
            )
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another run.py that is installing into {self.path}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            self.lock = lock.fileno()
            yield

    def build(self, extras: tuple[str, ...]) -> None:
        record = self.record()
        contents = [item for item in self.path.iterdir() if item != self.lock_file]
        ours = record.get("ours", not contents)
        moved = record.get("venv", str(self.path)) != str(self.path)
        interrupted = ours and not record.get("complete", False)
        if interrupted or moved or not self.works():
            self.clear(contents, ours)
            ours, record = True, {}
            self.write_record({"ours": ours})
            say(f"creating {self.path}")
            create(self)
        wanted = sorted({*extras, *record.get("extras", [])})
        self.write_record({"ours": ours})
        self.install(wanted, first=not record)
        self.write_record(
            {"ours": ours, "complete": True, "extras": wanted, **self.circumstances()}
        )

    def clear(self, contents: list[Path], ours: bool) -> None:
        """Empty the folder, if it is surely a virtual environment that nobody can use."""
        unusable = self.path == ROOT / ".venv" and (self.path / "pyvenv.cfg").exists()
        if contents and not ours and not unusable:
            fail(
                f"{self.path} is not a working virtual environment, and run.py did not make it. "
                "Delete that folder, or set PROXMARGIN_VENV to another one."
            )
        if contents:
            say(f"{self.path} is incomplete or out of date: starting it afresh")
        for item in contents:
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item)
            else:
                item.unlink()

    def write_record(self, record: dict) -> None:
        draft = self.record_file.with_suffix(".new")
        draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        os.replace(draft, self.record_file)

    def install(self, extras: list[str], first: bool) -> None:
        size = max(DOWNLOAD_MB.get(extra, DOWNLOAD_MB[""]) for extra in extras)
        cost = f" (about {size} MB to download, once)" if first else ""
        say(f"installing proxmargin [{', '.join(extras)}] and what it needs{cost}")
        if any(self.pip("install", *step) for step in steps(f"{ROOT}[{','.join(extras)}]")):
            lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
            print(*lines[-12:], sep="\n", file=sys.stderr)
            fail(f"pip could not install proxmargin. All it said is in {self.log_file}")

    def pip(self, *arguments: str) -> int:
        """Run pip with its output in the log, the large downloads shown, and the lock held."""
        command = [self.python, "-m", "pip", *arguments, "--progress-bar", "off", "--no-input"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=clean_environ(),
            pass_fds=[self.lock],
        )
        with process, open(self.log_file, "w", encoding="utf-8") as log:
            for line in process.stdout:
                log.write(line)
                show_pip(line)
        return process.returncode


def steps(project: str) -> list[list[str]]:
    """What pip is to install, in turn."""
    editable = ["--editable", project]
    if not requirements():
        return [editable]
    # the project comes second and from what is there: whatever the file leaves out is an error
    listed = ["--require-hashes", "--requirement", str(requirements())]
    return [listed, ["--no-index", "--no-build-isolation", *editable]]


def requirements() -> Path | None:
    """The file of exact versions and hashes to install from; None for the newest that fit."""
    name = os.environ.get("PROXMARGIN_REQUIREMENTS")
    if name and not Path(name).is_file():
        fail(f"PROXMARGIN_REQUIREMENTS={name} is no file; give a path such as {ROOT / LOCK}")
    return Path(name).resolve() if name else None


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def show_pip(line: str) -> None:
    download = re.search(r"(?:Downloading|Using cached) (\S+?)-([^-]+)-\S+whl \((\d+)\S* MB", line)
    if download:
        name, version, size = download.groups()
        if int(size) >= 5:
            say(f"  {name} {version}, {size} MB")
    elif line.startswith("Installing collected packages:"):
        say(f"  unpacking {line.count(',') + 1} packages")


# Where python -m venv does not work: Debian keeps the pip that it needs in a package of its own


def create(environment: Environment) -> None:
    """Make the environment with the first of these that works here."""
    for way in (with_venv, with_virtualenv, with_uv, with_system_pip, with_apt, with_fetched_pip):
        if way(environment) and environment.works():
            return
    environment.log_file.write_text("\n".join(attempts), encoding="utf-8")
    fail(
        f"{sys.executable} cannot make a virtual environment; most often its venv module is "
        "incomplete. On Debian and Ubuntu, type\n\n"
        f"    {'' if os.geteuid() == 0 else 'sudo '}apt-get install {venv_package()}\n\n"
        f"and then the same command again. What was tried is in {environment.log_file}"
    )


def with_venv(environment: Environment, *options: str) -> bool:
    return succeeds(sys.executable, "-m", "venv", *options, environment.path)


def with_virtualenv(environment: Environment) -> bool:
    program = shutil.which("virtualenv")
    start = [program] if program else [sys.executable, "-m", "virtualenv"]
    return succeeds(*start, "--python", sys.executable, environment.path)


def with_uv(environment: Environment) -> bool:
    program, options = shutil.which("uv"), ["--seed", "--allow-existing"]
    return bool(program) and succeeds(
        program, "venv", *options, "--python", sys.executable, environment.path
    )


def with_system_pip(environment: Environment) -> bool:
    """A pip outside can install one inside."""
    pip = [sys.executable, "-m", "pip"]
    return (
        succeeds(*pip, "--version")
        and with_venv(environment, "--without-pip")
        and succeeds(*pip, "--python", environment.python, "install", "pip")
    )


def with_apt(environment: Environment) -> bool:
    """Install Debian's package, where this is Debian's Python and no password is needed."""
    if not shutil.which("apt-get") or sys.base_prefix != "/usr":
        return False
    if os.geteuid() == 0:
        start = ["env"]
    elif shutil.which("sudo") and succeeds("sudo", "-n", "true"):
        start = ["sudo", "-n", "env"]
    else:
        return False
    apt = [*start, "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    package = venv_package()
    say(f"Python's venv module is incomplete here: running apt-get install -y {package}")
    install = [*apt, "install", "-y", package]
    installed = succeeds(*install) or (succeeds(*apt, "update") and succeeds(*install))
    return installed and with_venv(environment)


def with_fetched_pip(environment: Environment) -> bool:
    """Bring a pip of known checksum from the package index into an environment without one."""
    if not with_venv(environment, "--without-pip"):
        return False
    wheel = environment.path / PIP_WHEEL
    say(f"Python came without pip: fetching {PIP_WHEEL}")
    try:
        wheel.write_bytes(fetch_pip())
    except (OSError, ValueError) as error:
        say(f"  that failed: {error}")
        return False
    done = succeeds(environment.python, wheel / "pip", "install", "--no-index", wheel)
    wheel.unlink()
    return done


def fetch_pip() -> bytes:
    index = pip_setting("index-url", "https://pypi.org/simple").rstrip("/") + "/pip/"
    context = ssl.create_default_context(cafile=pip_setting("cert", None))
    with urllib.request.urlopen(index, timeout=60, context=context) as answer:
        page = answer.read().decode("utf-8")
    link = re.search(rf'href="([^"]*{re.escape(PIP_WHEEL)})(#[^"]*)?"', page)
    if not link:
        raise ValueError(f"{index} does not list {PIP_WHEEL}")
    address = urllib.parse.urljoin(index, link.group(1))
    with urllib.request.urlopen(address, timeout=60, context=context) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != PIP_SHA256:
        raise ValueError(f"{address} does not have the expected checksum")
    return content


def pip_setting(name: str, default: str | None) -> str | None:
    """One of pip's settings, found as pip finds it: environment, user, machine."""
    variable = "PIP_" + name.upper().replace("-", "_")
    if os.environ.get(variable):
        return os.environ[variable]
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    user = [os.path.expanduser("~/.pip/pip.conf"), f"{home}/pip/pip.conf"]
    files = configparser.RawConfigParser(strict=False)
    files.read(["/etc/pip.conf", *user, os.environ.get("PIP_CONFIG_FILE", "")])
    in_global = files.get("global", name, fallback=default)
    return files.get("install", name, fallback=in_global)


def venv_package() -> str:
    return "python{}.{}-venv".format(*sys.version_info)


# Small things

attempts: list[str] = []  # what commands said, for the log if none of the ways works


def succeeds(*command: str | os.PathLike) -> bool:
    words = [os.fspath(part) for part in command]
    try:
        outcome = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=clean_environ(),
        )
    except OSError as error:
        attempts.append(f"$ {' '.join(words)}\n{error}\n")
        return False
    attempts.append(f"$ {' '.join(words)}\n{outcome.stdout}")
    return outcome.returncode == 0


def clean_environ() -> dict[str, str]:
    """The user's variables, without those that point Python or pip away from the environment."""
    astray = {"PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_QUIET"}
    kept = {name: value for name, value in os.environ.items() if name not in astray}
    return {
        **kept,
        "PIP_USER": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONUNBUFFERED": "1",
    }


def cores() -> int:
    """How many cores this process may use; containers often grant fewer than they show."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(seen, int(quota) // int(period)))
    except (OSError, ValueError):  # not Linux, or no quota ("max")
        return seen


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fail(text: str) -> None:
    sys.exit(f"run.py: {text}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("run.py: interrupted; the same command starts again where it can")
