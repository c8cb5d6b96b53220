"""Errors of files, each raised with one sentence that says what to do."""

from __future__ import annotations


class DataError(ValueError):
    """A data file that cannot be read as a table for classification."""


class ModelFileError(ValueError):
    """A model that cannot be saved, or a file that is not a readable model."""


class UnwritableModelError(ModelFileError, OSError):
    """A valid model that cannot be written to its path."""
