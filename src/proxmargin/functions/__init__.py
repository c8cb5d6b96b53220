"""Losses, penalties and projections: mathematics that knows no data."""
