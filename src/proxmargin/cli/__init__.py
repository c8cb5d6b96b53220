"""The command ``proxmargin``: a few lines over the library for each subcommand.

Modules here import nothing heavy before a subcommand runs, so that ``--help`` is instant.
"""

from proxmargin.cli.program import main

__all__ = ["main"]
