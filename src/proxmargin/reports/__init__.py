"""Reports: what to know about a data set, and a comparison as one page of HTML."""

from proxmargin.reports.card import data_card

__all__ = ["data_card"]
