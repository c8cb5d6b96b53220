"""Constructors for classes that have the parameters of another class and some of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, Signature, signature
from typing import Any

__all__ = ["constructor"]


def constructor(own: Mapping[str, Any], of: type, without: Collection[str]) -> Callable[..., None]:
    """An ``__init__`` that stores its arguments as attributes, as scikit-learn requires.

    Parameters
    ----------
    own : mapping from parameter to default
        They come first, and can be given by position.
    of : type
        The class whose other parameters follow, by keyword only.
    without : names
        The parameters of that class that are left out.
    """
    mine = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=d) for n, d in own.items()]
    others = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(of).parameters.items()
        if name not in without
    ]
    first = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    accepted = Signature([first, *mine, *others])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = accepted.bind(self, *args, **kwargs)
        bound.apply_defaults()
        vars(self).update({n: value for n, value in bound.arguments.items() if n != "self"})

    __init__.__signature__ = accepted  # type: ignore[attr-defined]
    return __init__
