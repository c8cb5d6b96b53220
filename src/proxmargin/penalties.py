"""Penalties, for `MarginClassifier` and your own; defined in `functions/penalties`."""

from proxmargin.functions.penalties import *  # noqa: F403
from proxmargin.functions.penalties import __all__ as __all__
