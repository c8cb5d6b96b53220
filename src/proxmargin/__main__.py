"""``python -m proxmargin``: the same as the command ``proxmargin``."""

import sys

from proxmargin.cli import main

if __name__ == "__main__":
    sys.exit(main())
