"""A note in the log that kernels are being compiled, and where the result is kept."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from numba.core import event

from proxmargin.compiled import folders

logger = logging.getLogger("proxmargin")


class _Note(event.Listener):
    """Says why the first fit after an installation takes seconds; kernels on disk are no event."""

    said = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if not self.said and (function.__module__ or "").startswith(__package__):
            self.said = True
            logger.warning(
                "compiling kernels for their first use: some seconds, up to a minute for a "
                "family of models; %s",
                _whereabouts(),
            )

    def on_end(self, event: Any) -> None:
        pass


def _whereabouts() -> str:
    home = folders.home()
    if home is not None:
        return f"the result is kept in {home}"
    tried = " or ".join(map(str, folders.places())) or "a home of the user"
    return (
        f"every process does so again, as the result cannot be kept in {tried}: set "
        "NUMBA_CACHE_DIR to a folder of your own"
    )


@cache
def listen() -> None:
    """Have Numba say when it compiles."""
    event.register("numba:compile", _Note())
