"""Certificates of anybody's coefficients: how far another fit is from the optimum of its model."""

from proxmargin.models.auditing.audit import certify

__all__ = ["certify"]
