"""Solutions along a grid of strengths; defined in `models/paths`."""

from proxmargin.models.paths import *  # noqa: F403
from proxmargin.models.paths import __all__ as __all__
