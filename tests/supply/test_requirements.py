"""The files of exact versions agree with pyproject.toml, and with what is installed from them."""

from __future__ import annotations

import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NAME = PROJECT["project"]["name"]


def wanted(*extras: str) -> list[Requirement]:
    """What the project, these extras (and those that they contain) and its building need."""
    texts = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]
    for extra in extras:
        texts += PROJECT["project"]["optional-dependencies"][extra]
    found = []
    for requirement in map(Requirement, texts):
        inner = requirement.name == NAME
        found += wanted(*sorted(requirement.extras)) if inner else [requirement]
    return found


def pins(path: Path) -> dict[str, Version]:
    """Versions by name; every line of the file is a pin with its hashes, or a comment."""
    found = {}
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        pin, _, hashes = line.partition("--hash")
        assert re.match(r"=sha256:[0-9a-f]{64}", hashes), pin
        requirement = Requirement(pin)
        (exact,) = requirement.specifier
        assert exact.operator == "=="
        name = canonicalize_name(requirement.name)
        assert name not in found, f"{name} twice"
        found[name] = Version(exact.version)
    return found


FILES = {
    "lock.txt": ("test", "lint", "browser", "docs"),
    "oldest.txt": ("test",),
    "clients.txt": ("test", "clients"),
    "release.txt": ("release",),
}
PINS = {name: pins(ROOT / "requirements" / name) for name in FILES}


@pytest.mark.parametrize("file", FILES)
def test_every_dependency_is_pinned_within_its_bounds(file: str) -> None:
    needed = wanted(*FILES[file])
    assert needed
    versions = {each: PINS[file].get(canonicalize_name(each.name)) for each in needed}
    missing = [str(each) for each, version in versions.items() if version is None]
    assert not missing, "type python3 run.py lock"
    others = [
        f"{each}: {version}"
        for each, version in versions.items()
        if not each.specifier.contains(version, prereleases=True)
    ]
    assert not others, "type python3 run.py lock"


def lower_bounds() -> dict[str, Version]:
    found: dict[str, Version] = {}
    for requirement in wanted("test"):
        if any(each.operator == "==" for each in requirement.specifier):
            continue  # of one series, which has its own test
        bounds = [each.version for each in requirement.specifier if each.operator == ">="]
        assert len(bounds) == 1, f"{requirement} states no lower bound"
        name = canonicalize_name(requirement.name)
        found[name] = max(found.get(name, Version("0")), Version(bounds[0]))
    return found


@pytest.mark.parametrize(("name", "bound"), lower_bounds().items())
def test_the_oldest_versions_are_the_lower_bounds(name: str, bound: Version) -> None:
    assert PINS["oldest.txt"][name] == bound, "type python3 run.py lock"


def test_what_builds_the_project_is_pinned_too() -> None:
    builders = {Requirement(text).name for text in PROJECT["build-system"]["requires"]}
    assert builders <= {Requirement(text).name for text in PROJECT["dependency-groups"]["build"]}


@pytest.mark.skipif(
    not os.environ.get("PROXMARGIN_REQUIREMENTS"), reason="PROXMARGIN_REQUIREMENTS is not set"
)
def test_what_is_installed_is_what_the_file_lists() -> None:
    listed = pins(Path(os.environ["PROXMARGIN_REQUIREMENTS"]))
    installed = {
        canonicalize_name(each.metadata["Name"]): Version(each.version)
        for each in metadata.distributions()
    }
    others = installed.keys() - listed.keys() - {NAME, "pip", "setuptools", "wheel"}
    assert others == set()
    both = installed.keys() & listed.keys()
    assert {name: installed[name] for name in both} == {name: listed[name] for name in both}
