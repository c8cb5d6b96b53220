"""The browser that the tests and pictures of reports use."""

from __future__ import annotations

import shutil

__all__ = ["CHROMIUM", "FLAGS", "PATIENCE"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# no sandbox within a container, and none of the browser's own connections
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# milliseconds until all charts are drawn, on a busy machine
PATIENCE = 60_000
