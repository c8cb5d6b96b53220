"""Names that are alike but for the way in which programs write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from proxmargin.files.errors import said
from proxmargin.files.tables.cells import is_number, normal_form

_R_WRITES = re.compile(r"^X(?=[\W\d_])|[\W_]")  # names of columns, by make.names


def name_form(name: str) -> str:
    """The name without case, the kind of its marks, and the X that R writes before digits."""
    text = name.strip()
    plain = _R_WRITES.sub(lambda found: "" if found[0] == "X" else ".", text).casefold()
    return normal_form(text) if is_number(text) else plain


def spelt_otherwise(wanted: Iterable[str], present: Iterable[str]) -> dict[str, str]:
    """The ``wanted`` names by those that only one name of those ``present`` is like."""
    sought, there = dict.fromkeys(wanted), dict.fromkeys(present)
    given, found = Counter(map(name_form, sought)), Counter(map(name_form, there))
    own = {name_form(name): name for name in there if name not in sought}
    forms = {name: name_form(name) for name in sought if name not in there}
    return {n: own[f] for n, f in forms.items() if f in own and given[f] == found[f] == 1}


def told_otherwise(source: str, other: Mapping[str, str]) -> str:
    """A note on names of a model by those that are taken for them."""
    pairs = [f"{here!r} is {name!r}" for name, here in other.items()]
    return said("written_otherwise", source, count=len(pairs), pairs=pairs)
