"""Commands packed by hiredis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import hiredis


def pack_command(command: Iterable[Any]) -> bytes:
    """A whole command, by hiredis. A signal that comes while that makes text of a number ends the
    process with a segmentation fault (hiredis 3.5): so numbers are text before."""
    # Most are bytes, and may be thousands.
    texts: Any = tuple(
        [
            str(arg) if type(arg) is not bytes and isinstance(arg, int | float) else arg
            for arg in command
        ]
    )
    packed: bytes = hiredis.pack_command(texts)
    return packed
