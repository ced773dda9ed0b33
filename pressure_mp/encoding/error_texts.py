"""The texts in errors about bytes that cannot be used: what they are, and what becomes of them."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of bytes: what they are, and what becomes of them."""

    what: str
    fate: str


ITEM = Kind("an item", "it was set aside, see rejected()")
TASK = Kind("the data of a task", "take() buries the task, see list('buried')")
RESULT = Kind("the result of a task", "it stays until its time is over")
