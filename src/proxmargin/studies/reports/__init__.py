"""Reports: what to know about a data set, and a comparison as one page of HTML."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# nothing is imported before it is asked for: a comparison needs the card alone
_HOMES = {"check_libraries": "page", "data_card": "card", "write_report": "page"}

if TYPE_CHECKING:
    from proxmargin.studies.reports.card import data_card
    from proxmargin.studies.reports.page import check_libraries, write_report

__all__ = ["check_libraries", "data_card", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
