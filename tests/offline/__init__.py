"""Forbids the network to the tests, and to the processes that they start."""

import os
from pathlib import Path

from tests.offline import sitecustomize

__all__ = ["forbid_to_children", "sitecustomize"]


def forbid_to_children() -> None:
    """Let every Python that inherits the environment start with the module beside this one."""
    folders = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)
