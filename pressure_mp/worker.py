"""``python -m pressure_mp.worker NAME``: a program that does the calls of a named executor."""

import sys

from .executor.program import main

if __name__ == "__main__":
    sys.exit(main())
