"""Losses, for `MarginClassifier` and your own; defined in `functions/losses`."""

from proxmargin.functions.losses import *  # noqa: F403
from proxmargin.functions.losses import __all__ as __all__
