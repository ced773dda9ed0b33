"""The type of a queue's items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

#: Of items of which the program says nothing, as in ``Queue.attach("jobs")``, checkers take Any.
if TYPE_CHECKING:
    import typing_extensions

    Item = typing_extensions.TypeVar("Item", default=Any)
else:  # what they look at is not needed to run, and typing has it only from Python 3.13 on
    Item = TypeVar("Item")
