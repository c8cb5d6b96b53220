"""Numba kernels: fused twins of array formulas, coordinate sweeps, mixed-precision products.

Nothing else in the package imports Numba. Every kernel is held to its array formula by a test.
What is compiled is kept on disk; the log says once a process that there was something to compile.
"""

import logging
from typing import Any

from numba.core import event

__all__: list[str] = []

logger = logging.getLogger("proxmargin")


class _Note(event.Listener):
    """Says why the first fit after an installation takes seconds; kernels on disk are no event."""

    said = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if not self.said and (function.__module__ or "").startswith(__name__):
            self.said = True
            logger.warning(
                "compiling kernels for their first use: some seconds, up to a minute for a "
                "family of models; the result is kept on disk"
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Note())  # type: ignore[no-untyped-call]
