"""Tests of differences between models; defined in `studies/stats`."""

from proxmargin.studies.stats import *  # noqa: F403
from proxmargin.studies.stats import __all__ as __all__
