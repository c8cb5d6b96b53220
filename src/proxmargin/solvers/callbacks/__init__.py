"""Callbacks of a minimisation: called with a report after each certificate."""

from proxmargin.solvers.callbacks.checkpoint import Checkpoint
from proxmargin.solvers.callbacks.history import History
from proxmargin.solvers.callbacks.progress import Progress

__all__ = ["Checkpoint", "History", "Progress"]
