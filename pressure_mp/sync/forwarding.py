"""Forward items to a file, a pipe or another queue: each leaves its queue when it arrived there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..buffering import choosing
from ..drivers import drive_on
from ..encoding import large, signing
from ..encoding.as_queued import AsQueued
from ..encoding.display import PICKLE
from ..encoding.large import is_manifest, read_unchecked, token_of
from ..engines.contract.queues import How
from ..exceptions import PressureError
from ..handles.objects import ObjectAttachment
from ..operations.control import FIFO
from ..operations.large import fetch, sweep
from ..operations.objects import ObjectOperations
from .handles import attachment_of, make
from .queues import Queue

if TYPE_CHECKING:
    from typing_extensions import Self


#: What the items begin with that are pickles, are signed, or have their content elsewhere.
_MARKED = frozenset(mark[:1] for mark in (PICKLE, signing.MARK, large.MARK))
#: How many items are fetched at once.
_SIZE = 1000


class NextIsLarge(PressureError):
    """The content of the next item is kept apart: it is not forwarded in one piece."""


class _AnyQueue(Queue[bytes]):
    """A queue of whatever discipline."""

    def __init__(self, name: str, discipline: str, options: dict[str, Any]) -> None:
        self._make_operations = partial(ObjectOperations, discipline=discipline)
        super().__init__(0, name, serializer="raw", buffering=0, **options)


class Forwarder:
    """Forwards the items of one queue, in one thread. As a context manager: items that were not
    forwarded go back when the block ends; they were never elsewhere than at the broker."""

    def __init__(self, name: str, discipline: str, options: dict[str, Any]) -> None:
        if discipline == FIFO:
            options = {**options, "prefetch": _SIZE}
        self._handle = make(_AnyQueue, How.ATTACH, False, name, discipline, options)
        self._queue: ObjectAttachment = attachment_of(self._handle)
        self._codec: Any = self._queue.codec
        # From now on nothing is checked or decoded.
        as_queued: Any = AsQueued(self._handle.prefix, name)
        self._queue.use(as_queued)
        _, self._gets = choosing.make(self._queue)

    def are_plain(self, items: list[bytes]) -> bool:
        """Whether each item is, as it is queued, what was put, and no pickle. So is most text, and
        to find it out for many at once takes little time."""
        return not self._codec.is_signed and _MARKED.isdisjoint({item[:1] for item in items})

    def check(self, item: bytes) -> bytes:
        """The content of an item whose signature is right. Raises AuthenticationError."""
        if is_manifest(item):
            raise NextIsLarge(_TOO_LARGE)
        return self._codec.prepare().check(item)  # type: ignore[no-any-return]

    def forward(
        self, write: Callable[[list[bytes]], int], limit: int | None, timeout: float | None
    ) -> None:
        """Give ``write`` the next items, up to ``limit``, which returns how many it has dealt with,
        and raises nothing. These have left the queue then. Waits for one, at most ``timeout``
        seconds.

        Raises NextIsLarge, and what ``get`` does.
        """
        gets: Any = self._gets
        if self._queue.buffering.gets:
            if gets.forward(self._queue, partial(_up_to, limit, write)):
                return
            if not self._forward_next(write, timeout, takes_large=False):
                raise NextIsLarge(_TOO_LARGE)
        else:
            self.forward_one(write, timeout)

    def fetch(self, item: bytes) -> list[bytearray]:
        """Return the segments of a large item. Raises NextIsLarge when they are gone."""
        content = self._queue.run_at_once(fetch(read_unchecked(item)))
        if content is None:
            raise NextIsLarge("the content of the next item is gone; drop the item")
        return content

    def forward_one(self, write: Callable[[list[bytes]], int], timeout: float | None) -> None:
        """Forward one item, of any size, and prefetch none."""
        self._forward_next(write, timeout, takes_large=True)

    def _forward_next(
        self, write: Callable[[list[bytes]], int], timeout: float | None, takes_large: bool
    ) -> bool:
        """Forward one item. Returns False for a large one, which goes back, without
        ``takes_large``."""
        taken: list[bytes] = []
        is_large = False

        def receive(claim: Any) -> None:
            nonlocal is_large
            operation = self._queue.operations.get(True, timeout)
            taken.append(drive_on(operation, claim))
            is_large = is_manifest(taken[0])
            if (is_large and not takes_large) or write(taken) == 0:
                raise _NotWritten

        try:
            self._queue.hand_out(receive)
            if is_large:
                self._queue.run_at_once(sweep(token_of(taken[0])))
        except _NotWritten:  # it went back, and ``write`` knows why
            return takes_large or not is_large
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._gets.give_back(self._queue)
        self._handle.close()


_TOO_LARGE = (
    "the content of the next item is kept apart, and is not written: get it with Python, or export "
    "the queue"
)


class _NotWritten(Exception):
    """Nothing was written: the taken item goes back."""


def _up_to(limit: int | None, write: Callable[[list[bytes]], int], items: list[bytes]) -> int:
    return write(items[:limit])
