"""Reports: what to know about a data set, and a comparison as one page of HTML."""

from proxmargin.reports.assets import check_libraries
from proxmargin.reports.card import data_card
from proxmargin.reports.page import write_report

__all__ = ["check_libraries", "data_card", "write_report"]
