"""How a text table is written: what separates its cells, and what its bytes mean."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from proxmargin.files.errors import DataError

__all__ = ["USUAL", "Dialect"]


@dataclass(frozen=True)
class Dialect:
    """How to read CSV, TSV and other delimited text.

    Parameters
    ----------
    separator : str of one character, optional
        Between the cells. By default a tab in TSV files and a comma elsewhere. A file whose
        suffix is unknown, or .txt, is read as a text table where it is given.
    decimal : str of one character
        Between the whole part of a number and its fraction.
    encoding : str
        A name that Python knows; a byte order mark is no data in UTF-8.
    header : bool
        Whether the first line has the names of the columns. Otherwise they are called by their
        positions: 0, 1, ...

    Raises
    ------
    DataError
        For a separator or decimal mark of another length, and an unknown encoding.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool = True

    def __post_init__(self) -> None:
        for what, mark in (("separator", self.separator), ("decimal mark", self.decimal)):
            if mark is not None and (len(mark) != 1 or mark in '"\r\n'):
                raise DataError(f"The {what} must be one character, and not {mark!r}.")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise DataError(f"There is no encoding {self.encoding!r}.") from None

    @property
    def codec(self) -> str:
        """The encoding, without the byte order mark that UTF-8 may begin with."""
        name = codecs.lookup(self.encoding).name
        return "utf-8-sig" if name == "utf-8" else name


USUAL = Dialect()
