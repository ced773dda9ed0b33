"""What processes that tests start need in order to import the modules of this folder."""

from __future__ import annotations

import os
from pathlib import Path

SUPPORT = str(Path(__file__).parent)


def environment(**variables: str) -> dict[str, str]:
    """This process's, with ``variables``, for a process that imports modules of this folder."""
    return {**os.environ, "PYTHONPATH": SUPPORT, **variables}
