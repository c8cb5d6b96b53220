"""What is installed gets kernels compiled ahead of time, where there is a C compiler.

PROXMARGIN_KERNELS=all, for wheels that others get, compiles them for all levels of processors; with
none they are left as they are. Without a library a wheel is the same for all systems.
"""

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from sysconfig import get_platform
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "src/proxmargin/compiled"


class KernelsHook(BuildHookInterface):
    """Puts the library of kernels into the wheel, or beside the sources of an editable install."""

    def dependencies(self) -> list[str]:
        """What builds it, and nothing of that is needed later."""
        needed = [f"numba=={self._library().NUMBA}.*", "numpy>=2", "scipy>=1.14", "joblib>=1.4"]
        return needed if self._levels() is not None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        levels = self._levels()
        if levels is not None:
            # pip's own environment, with Numba in it, is found by this variable
            places = [str(Path(self.root) / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
            settings = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
            command = [sys.executable, "-m", "proxmargin.compiled.build", *levels]
            subprocess.run(command, cwd=self.root, env=settings, check=True)
        if self.target_name == "wheel" and version != "editable" and self._is_built():
            platform = get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{platform}"
            build_data["artifacts"].append(f"{PACKAGE}/library/kernels*")

    def _levels(self) -> list[str] | None:
        """The levels to build, none for that of this processor; None: nothing."""
        setting, library = os.environ.get("PROXMARGIN_KERNELS"), self._library()
        if self.target_name != "wheel" or setting == "none":
            return None
        if setting == "all":
            return ["all"]
        return [] if library.compiler() and library.levels() and not self._is_built() else None

    def _is_built(self) -> bool:
        """Whether all kernels are in a library of the sources as they are."""
        library = self._library()
        try:
            return bool(library.table(library.FOLDER)["complete"])
        except (library.Refused, OSError):
            return False

    def _library(self) -> Any:
        """The module of this name, whose import needs nothing but Python."""
        spec = spec_from_file_location("library", Path(self.root) / PACKAGE / "library.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
