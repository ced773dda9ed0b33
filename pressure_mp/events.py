"""What happens to items and tasks, told to those who listen: mostly nobody.

Operations and buffers tell it, so both worlds and every engine do. As long as nobody listens, a put
or a get asks only whether :data:`listeners` is empty.
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
    """Who is told. It raises nothing. Its methods run in the thread, and in the context, of the
    program's call."""

    def sending(self, to: Destination, number: int) -> AbstractContextManager[Mapping[str, str]]:
        """So many items are put, in one call of the program, within this context, which ends with
        the call's error, if it has one. It gives the headers of each of them."""

    def created(self, to: Destination) -> Mapping[str, str]:
        """An item is put, and sent later by a thread. Returns its headers."""

    def received(self, source: Destination, messages: Sequence[Message], since: int) -> None:
        """These have come, in one reply of the broker. They were asked for at ``since``, in
        nanoseconds since the epoch."""

    def settled(
        self, source: Destination, verb: str, messages: Sequence[Message], since: int
    ) -> None:
        """The broker was told what becomes of these: of tasks ``ack``, ``release`` or ``bury``, of
        items ``task_done``. It was asked at ``since``, in nanoseconds since the epoch."""

    def processing(self, source: Destination, message: Message) -> AbstractContextManager[None]:
        """A handler works on a task within this context, which ends with the handler's error, if it
        has one."""


#: Who listens. A tuple, so that whoever goes through it is not disturbed.
listeners: tuple[Listener, ...] = ()

_NO_HEADERS = nullcontext(b"")
_NOTHING = nullcontext()


def listen(listener: Listener) -> None:
    """From now on it is told."""
    global listeners
    listeners = (*listeners, listener)


def ignore(listener: Listener) -> None:
    """From now on it is not."""
    global listeners
    listeners = tuple(one for one in listeners if one is not listener)


def sending(to: Destination, number: int) -> AbstractContextManager[bytes]:
    """What to put so many items in: it gives the beginning of their envelope."""
    return _sending(to, number) if listeners else _NO_HEADERS


@contextmanager
def _sending(to: Destination, number: int) -> Iterator[bytes]:
    with ExitStack() as stack:
        headers: dict[str, str] = {}
        for listener in listeners:
            headers.update(stack.enter_context(listener.sending(to, number)))
        yield envelope.beginning(headers)


def created(to: Destination) -> bytes:
    """The beginning of the envelope of an item that is sent later."""
    if not listeners:
        return b""
    headers: dict[str, str] = {}
    for listener in listeners:
        headers.update(listener.created(to))
    return envelope.beginning(headers)


def now() -> int:
    """The ``since`` of something that is asked for now; 0 when nobody listens."""
    return time_ns() if listeners else 0


def received(source: Destination, messages: Sequence[Message], since: int = 0) -> None:
    """These have come, as they were asked for at ``since``; 0 is now."""
    since = since or time_ns()
    for listener in listeners:
        listener.received(source, messages, since)


def settled(source: Destination, verb: str, messages: Sequence[Message], since: int = 0) -> None:
    """The broker knows what becomes of these, as it was asked at ``since``; 0 is now."""
    since = since or time_ns()
    for listener in listeners:
        listener.settled(source, verb, messages, since)


def processing(source: Destination, message: Message) -> AbstractContextManager[None]:
    """What to run a handler in."""
    return _processing(source, message) if listeners else _NOTHING


@contextmanager
def _processing(source: Destination, message: Message) -> Iterator[None]:
    with ExitStack() as stack:
        for listener in listeners:
            stack.enter_context(listener.processing(source, message))
        yield
