"""Wheels with kernels compiled ahead of time: PROXMARGIN_KERNELS=build pip wheel .

Without that, a wheel holds the library that was built in the checkout, if it is of the sources as
they are, and is one for this system; or none, and is one for all.
"""

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from sysconfig import get_platform
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NUMBA = ["numba==0.68.*", "numpy>=2", "scipy>=1.14"]  # of the build alone
PACKAGE = "src/proxmargin/compiled"


class KernelsHook(BuildHookInterface):
    """Puts the library of kernels into the wheel."""

    def dependencies(self) -> list[str]:
        return NUMBA if os.environ.get("PROXMARGIN_KERNELS") == "build" else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self.target_name != "wheel":
            return
        root = Path(self.root)
        if self.dependencies():
            settings = {**os.environ, "PYTHONPATH": str(root / "src")}
            command = [sys.executable, "-m", "proxmargin.compiled.build", "all"]
            subprocess.run(command, cwd=root, env=settings, check=True)
        spec = spec_from_file_location("digest", root / PACKAGE / "digest.py")
        digest = module_from_spec(spec)
        spec.loader.exec_module(digest)
        if digest.is_current():
            platform = get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{platform}"
            build_data["artifacts"].append(f"{PACKAGE}/library/kernels*")
