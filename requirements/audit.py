"""Look for known vulnerabilities, list licences, and write a bill of materials (CycloneDX).

    python3 run.py audit [FOLDER]    what is written goes to FOLDER (build/audit)

Vulnerabilities are those of everything in lock.txt; licences and the bill are those of what
`proxmargin[cli]` installs of it. The status is 1 where something was found, and 2 where the
advisories of the package index could not be read.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "lock.txt"
BIN = Path(sys.executable).parent
# exit status where a vulnerability was found
FOUND = 1
# exit status where nothing, or not everything, could be looked up
UNREAD = 2

# what a BSD-3-Clause library may depend on without a duty beyond a notice
COMPATIBLE = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "License :: OSI Approved :: BSD License",
    "MIT",
    "PSF-2.0",
    "Zlib",
}


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0] if arguments else ROOT / "build" / "audit").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    vulnerable = vulnerabilities(folder / "vulnerabilities.json")
    doubtful = licences(folder / "sbom.cdx.json")
    print(f"\nwritten to {folder}")
    return FOUND if doubtful or vulnerable == FOUND else vulnerable


def vulnerabilities(report: Path) -> int:
    """Ask the package index about every locked version; the status."""
    report.unlink(missing_ok=True)
    locked = ["--disable-pip", "--require-hashes", "--requirement", LOCK]
    quiet = ["--progress-spinner", "off", "--format", "json", "--output", report]
    asked = subprocess.run([BIN / "pip-audit", *locked, *quiet], stderr=subprocess.PIPE, text=True)
    if not report.exists():
        print("vulnerabilities: none could be looked up:", *asked.stderr.strip().splitlines()[-1:])
        return UNREAD
    return told(json.loads(report.read_text(encoding="utf-8"))["dependencies"])


def told(dependencies: list[dict[str, Any]]) -> int:
    """Say what pip-audit found; what it skipped is not taken for sound. The status."""
    skipped = [each for each in dependencies if "skip_reason" in each]
    found = [each for each in dependencies if each.get("vulns")]
    asked = len(dependencies) - len(skipped)
    print(f"vulnerabilities: {asked} of {len(dependencies)} locked packages could be looked up")
    for each in found:
        ids = ", ".join(known["id"] for known in each["vulns"])
        print(f"  {each['name']} {each['version']}: {ids}")
    if found:
        return FOUND
    return UNREAD if skipped else 0


def licences(bill: Path) -> list[str]:
    """Write the bill of a fresh installation and print its licences; those to look into."""
    with tempfile.TemporaryDirectory() as scratch:
        python = Path(scratch) / "bin" / "python"
        uv = [sys.executable, "-m", "uv", "--no-config", "--quiet"]
        run(*uv, "venv", "--python", sys.executable, scratch)
        given = ["--python", python, "--constraints", LOCK, f"{ROOT}[cli]"]
        run(*uv, "pip", "install", "--system-certs", *given)
        told = ["--pyproject", ROOT / "pyproject.toml", "--output-reproducible", "-o", bill]
        run(BIN / "cyclonedx-py", "environment", *told, python)
        bundled = sorted(Path(scratch).glob("lib/python*/site-packages/*.libs/*"))
    components = json.loads(bill.read_text(encoding="utf-8"))["components"]
    print(f"\nlicences: {len(components)} packages in an installation of proxmargin[cli]")
    for each in components:
        print(f"  {each['name']} {each['version']}: {', '.join(sorted(named(each)))}")
    print("shared libraries inside their wheels:")
    for library in bundled:
        print(f"  {library.parent.name.removesuffix('.libs')}: {library.name}")
    doubtful = [each["name"] for each in components if not named(each) or named(each) - COMPATIBLE]
    print(f"to look into: {', '.join(doubtful) or 'none'}")
    return doubtful


def named(component: dict[str, Any]) -> set[str]:
    """The licences of a component of a CycloneDX bill; of an expression, each part."""
    found: set[str] = set()
    for each in component.get("licenses", []):
        licence = each.get("license", {})
        whole = each.get("expression") or licence.get("id") or licence.get("name") or ""
        found |= {part.strip(" ()") for part in re.split(r"\b(?:AND|OR)\b", whole)}
    return found - {""}


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
