"""Which puts add their item at once to a queue in shared memory, and which are sent together."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from ..engines.contract.session import is_local

if TYPE_CHECKING:
    from ..handles.objects import ObjectAttachment

#: Puts of which more than so many come within so many seconds behind each other are sent together;
#: and so many more, where a get waited for the items.
_MANY, _SOON, _PATIENT = 3, 2e-5, 100


class PutsAtOnce:
    """The pace of the puts of one sender, before which nothing is to be sent."""

    __slots__ = ("_hasty", "_last")

    def __init__(self) -> None:
        self._last = -math.inf  # when one was done, on the monotonic clock
        self._hasty = 0  # how many came soon behind another

    def put(self, queue: ObjectAttachment, item: bytes) -> bool:
        """Add an item to its queue at once, if the engine can do so without a word to the broker.
        Not while one put soon follows the other: then they are faster together."""
        binding = queue.binding
        if not is_local(binding):
            return False
        gap = time.monotonic() - self._last
        self._hasty = self._hasty + 1 if gap < _SOON else 0
        if self._hasty > _MANY:
            return False
        is_done = binding.put_here(item)
        self._last = time.monotonic()
        return is_done

    def calm(self) -> None:
        """Put the next items one by one: a get waits for them."""
        self._hasty = -_PATIENT

    def note_get(self) -> None:
        """Note that a get came behind the last put: the next put begins anew to be soon."""
        if self._hasty > 0:
            self._hasty = 0
