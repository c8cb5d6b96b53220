"""The pages of comparisons and of data; defined in `studies/reports`."""

from proxmargin.studies.reports import *  # noqa: F403
from proxmargin.studies.reports import __all__ as __all__
