"""One warning of what makes the scores of a data file too good."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proxmargin.files.tables.contents import Table

__all__ = ["warn_of_leaks"]


def warn_of_leaks(table: Table) -> None:
    """Warn, once, of columns and rows of a file that give the classes away.

    Embedded data sets are known, and not searched.
    """
    if table.y is None or not os.path.exists(table.source):
        return
    from proxmargin.reports.card import leak_signs

    grouped = table.groups is not None
    found = leak_signs(table.X, table.y, table.feature_names, grouped=grouped)
    if found:
        warnings.warn(f"{table.source}: {'; '.join(found)}.", UserWarning, stacklevel=2)
