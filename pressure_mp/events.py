"""Tell listeners what happens to items and tasks. Most processes have no listener.

Operations and buffers call these functions: the same for threads and asyncio, and for every engine.
Without a listener, a put or a get only checks whether :data:`listeners` is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from time import time_ns
from typing import NamedTuple, Protocol

from .encoding import envelope
from .engines.contract.address import Endpoint


class Destination(NamedTuple):
    """A queue: its name, its discipline, whether it is an anonymous one, and which server has it,
    if the broker's address names one."""

    name: str
    discipline: str
    is_anonymous: bool
    server: Endpoint | None


class Message(NamedTuple):
    """An item or a task that was received: the headers that its producer's listeners gave it; of a
    task its id, and the seconds from its put to its first delivery, by the broker's clock."""

    headers: Mapping[str, str]
    id: int | str | None = None
    waited: float | None = None


class Listener(Protocol):
    """The methods of a listener. They raise nothing, and run in the thread and the context of the
    program's call."""

    def sending(self, to: Destination, number: int) -> AbstractContextManager[Mapping[str, str]]:
        """Return a context for the put of ``number`` items in one call of the program; it gives the
        headers of each of them. The call's error, if any, leaves the context."""

    def created(self, to: Destination) -> Mapping[str, str]:
        """Return the headers of an item that is put now and sent later, by a thread."""

    def received(self, source: Destination, messages: Sequence[Message], since: int) -> None:
        """Note messages that came in one reply of the broker. They were asked for at ``since``, in
        nanoseconds since the epoch."""

    def settled(
        self, source: Destination, verb: str, messages: Sequence[Message], since: int
    ) -> None:
        """Note that the broker was told what becomes of messages: of tasks ``ack``, ``release`` or
        ``bury``, of items ``task_done``. It was asked at ``since``, in nanoseconds since the
        epoch."""

    def processing(self, source: Destination, message: Message) -> AbstractContextManager[None]:
        """Return a context for the work of a handler on a task. The handler's error, if any, leaves
        the context."""


#: A tuple, so that a loop over it is not disturbed when a listener is added or removed.
listeners: tuple[Listener, ...] = ()

_NO_HEADERS = nullcontext(b"")
_NOTHING = nullcontext()


def listen(listener: Listener) -> None:
    """Tell ``listener`` from now on."""
    global listeners
    listeners = (*listeners, listener)


def ignore(listener: Listener) -> None:
    """Tell ``listener`` no more."""
    global listeners
    listeners = tuple(one for one in listeners if one is not listener)


def sending(to: Destination, number: int) -> AbstractContextManager[bytes]:
    """Return a context in which to put ``number`` items; it gives the beginning of their
    envelope."""
    return _sending(to, number) if listeners else _NO_HEADERS


@contextmanager
def _sending(to: Destination, number: int) -> Iterator[bytes]:
    with ExitStack() as stack:
        headers: dict[str, str] = {}
        for listener in listeners:
            headers.update(stack.enter_context(listener.sending(to, number)))
        yield envelope.beginning(headers)


def created(to: Destination) -> bytes:
    """Return the beginning of the envelope of an item that is sent later."""
    if not listeners:
        return b""
    headers: dict[str, str] = {}
    for listener in listeners:
        headers.update(listener.created(to))
    return envelope.beginning(headers)


def now() -> int:
    """Return the ``since`` of a request that is made now; 0 without listeners."""
    return time_ns() if listeners else 0


def received(source: Destination, messages: Sequence[Message], since: int = 0) -> None:
    """Tell listeners of messages that came. They were asked for at ``since``; 0 is now."""
    since = since or time_ns()
    for listener in listeners:
        listener.received(source, messages, since)


def settled(source: Destination, verb: str, messages: Sequence[Message], since: int = 0) -> None:
    """Tell listeners what becomes of messages. The broker was asked at ``since``; 0 is now."""
    since = since or time_ns()
    for listener in listeners:
        listener.settled(source, verb, messages, since)


def processing(source: Destination, message: Message) -> AbstractContextManager[None]:
    """Return a context in which to run a handler."""
    return _processing(source, message) if listeners else _NOTHING


@contextmanager
def _processing(source: Destination, message: Message) -> Iterator[None]:
    with ExitStack() as stack:
        for listener in listeners:
            stack.enter_context(listener.processing(source, message))
        yield
