"""Callbacks of a minimisation: called with a report after each certificate."""

from proxmargin.callbacks.checkpoint import Checkpoint
from proxmargin.callbacks.history import History
from proxmargin.callbacks.progress import Progress

__all__ = ["Checkpoint", "History", "Progress"]
