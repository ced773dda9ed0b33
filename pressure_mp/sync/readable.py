"""A file descriptor that is readable while an item may be got, for ``select`` and the like.

A connection to the broker cannot be that descriptor: each call that uses it reads it, and it says
nothing of a queue. So it is the end of a pipe, which has a byte in it while an item may be got. One
thread of the process looks at all queues whose ``fileno`` was called, about thirty times a second,
and a hundred times a second after a change. There is no further cost, and none before the first
``fileno``.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

from .. import lifecycle
from ..buffering.direct import DirectGet
from ..drivers import drive
from ..engines import registry
from ..engines.contract.hosts import QueueKey
from ..engines.contract.session import Engine, Options, is_local
from ..exceptions import HandleClosedError, PressureError, QueueDoesNotExistError
from ..handles.objects import ObjectAttachment
from ..identity.descriptors import Descriptor
from ..operations.brokers import may_get
from .absent import Absent

T = TypeVar("T")

#: Seconds between two looks; and between the looks in so many seconds after a change.
LOOK = 0.03
_SOONER, _LIVELY = 0.01, 1.0


class Readable:
    """The descriptor of one handle, ``q._reader``."""

    recv = Absent("use the queue's get()")
    recv_bytes = Absent("use the queue's get()")
    send = Absent("use the queue's put()")
    send_bytes = Absent("use the queue's put()")

    def __init__(self, queue: ObjectAttachment, gets: DirectGet) -> None:
        self._queue = weakref.ref(queue)
        self._gets = gets
        self._name = queue.name
        self.reset()
        self._is_closed = queue.is_closed

    def reset(self) -> None:
        """Begin: a new descriptor, or the descriptor of a forked child."""
        self._lock = threading.Lock()
        self._ends: tuple[Descriptor, Descriptor] | None = None
        self._left: list[Descriptor] = []  # the ends of pipes of which the program closed one
        self._has_byte = False
        self._is_closed = False
        self._looks = 0
        #: When it last changed.
        self.changed = 0.0

    def fileno(self) -> int:
        """The descriptor. Raises HandleClosedError."""
        with self._lock:
            if self._is_closed:
                raise HandleClosedError(f"queue {self._name!r} is closed, and has no descriptor")
            if self._ends is None:
                read, write = os.pipe()
                self._ends = Descriptor(read), Descriptor(write)
                self._has_byte = False
                _add(self)
            read_end = self._ends[0].number
        self.look()
        return read_end

    def poll(self, timeout: float | None = 0.0) -> bool:
        """Whether an item may be got; waits for one without limit, or at most ``timeout`` seconds
        (``multiprocessing.connection.Connection.poll``)."""
        import selectors

        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno(), selectors.EVENT_READ)
            return bool(selector.select(timeout))

    def look(self) -> None:
        """Be readable if an item may be got, and else not. A broker that does not answer changes
        nothing."""
        with self._lock:  # so that of two looks the later one counts
            if self._ends is None:
                return
            self._looks += 1
            try:
                may_get = self._may_get()
            except PressureError:
                return  # the next look tries again
            if self._has_ends():  # the program may have closed them while the broker was asked
                self._show(may_get)

    def _has_ends(self) -> bool:
        if self._ends is None:
            return False
        if not all(end.is_open for end in self._ends):
            # The program closes all descriptors, and may close the other end at this moment.
            self._left += self._ends
            self._ends = None
            return False
        return True

    def _may_get(self) -> bool:
        """Tell whether a get would return an item, or raise that none will come."""
        queue, gets = self._queue(), self._gets
        if queue is None:
            return False
        if queue.kept or len(gets):
            return True
        # The next look tries again: this one must not keep a get waiting, or other queues.
        at_once = queue.options._replace(reconnect=0)
        try:
            queue.attached()
            gets.before_look(queue)
            binding = queue.bind(registry.engine(queue.address), at_once)
            return drive(queue.operations.may_get(), binding.session())
        except QueueDoesNotExistError:
            return True

    def asked_together(self) -> Asked | None:
        """Return what a look at several queues needs of this one; None if it is looked at alone."""
        looks, queue = self._looks, self._queue()
        binding = None if queue is None else queue.binding
        if queue is None or binding is None or queue.kept or len(self._gets):
            return None
        if is_local(binding) and binding.are_here:
            return None
        self._gets.before_look(queue)
        return Asked(self, looks, registry.engine(queue.address), queue.queue_key)

    def see(self, looks: int, may_get: bool) -> None:
        """Show the broker's reply, unless there was a look at this queue alone since it had so
        many ``looks``."""
        with self._lock:
            if self._has_ends() and self._looks == looks:
                self._show(may_get)

    def after(self, get: Callable[[Callable[[], None]], list[T]]) -> list[T]:
        """Get items; what this says of the queue is true when they are returned. ``get`` is given
        the look to be made when it has them, so that it gives them back if that is interrupted."""
        try:
            return get(self.look)
        except PressureError:
            self.look()
            raise

    def _show(self, is_readable: bool) -> None:
        assert self._ends is not None
        had_byte, self._has_byte = self._has_byte, is_readable
        # With that step it is done: what comes from outside comes behind a call.
        if is_readable and not had_byte:
            os.write(self._ends[1].number, b"\0")
        elif had_byte and not is_readable:
            os.read(self._ends[0].number, 1)
        if had_byte != is_readable:
            self.changed = time.monotonic()

    def close(self) -> None:
        """There is no descriptor any more."""
        with self._lock:
            self._is_closed = True
            self.drop()
        with _guard:
            _all.discard(self)

    def drop(self) -> None:
        """Let go of the pipe."""
        ends, self._ends = [*self._left, *(self._ends or ())], None
        self._left = []
        for end in ends:
            end.close()

    def __del__(self) -> None:
        self.drop()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a descriptor belongs to one process: pass the queue, and ask it for another"
        )


class Asked(NamedTuple):
    """A queue in a look at several queues, and the number of its own looks before that one."""

    readable: Readable
    looks: int
    engine: Engine
    queue: QueueKey


_guard = threading.Lock()
_all: weakref.WeakSet[Readable] = weakref.WeakSet()
_thread: threading.Thread | None = None
_ending = threading.Event()


def of(queue: ObjectAttachment, gets: DirectGet) -> Readable:
    """The descriptor of a handle, which is made now if it was never asked for."""
    with _guard:
        if queue.readable is None:
            queue.readable = Readable(queue, gets)
        found: Readable = queue.readable
        return found


def _add(readable: Readable) -> None:
    """Look at a descriptor from now on."""
    global _thread
    with _guard:
        _all.add(readable)
        if _thread is None and not _ending.is_set():
            lifecycle.begin_use()
            _thread = threading.Thread(target=_look_at_all, name="pressure_mp select", daemon=True)
            try:
                _thread.start()
            except BaseException:
                _thread = None
                raise


def _look_at_all() -> None:
    """Run the thread, until there is no descriptor to look at."""
    global _thread
    while True:
        with _guard:
            now = list(_all)
            if not now:
                _thread = None
                return
        _look_at_each(now)
        is_lively = time.monotonic() - max(one.changed for one in now) < _LIVELY
        del now  # keeps nothing alive
        if _ending.wait(_SOONER if is_lively else LOOK):
            return


def _look_at_each(queues: list[Readable]) -> None:
    """Look at the queues, with one call for the queues of one broker."""
    together: dict[int, list[Asked]] = {}
    for readable in queues:
        try:
            asked = readable.asked_together()
        except PressureError:
            continue  # the next look tries again
        if asked is None:
            readable.look()
        else:
            together.setdefault(id(asked.engine), []).append(asked)
    for some in together.values():
        broker = some[0].engine.broker(Options(reconnect=0))
        try:
            told = drive(may_get([one.queue for one in some]), broker.session())
        except PressureError:
            continue
        for one, said in zip(some, told, strict=True):
            if said is None:
                one.readable.look()
            else:
                one.readable.see(one.looks, said)


def _end() -> None:
    """Stop the looks; wait for one under way, for up to a second."""
    _ending.set()
    thread = _thread
    if thread is not None:
        thread.join(1.0)


def _after_fork_in_child() -> None:
    """Drop the parent's pipes: a byte that the child read would be missing there."""
    global _guard, _thread, _ending
    _guard, _thread, _ending = threading.Lock(), None, threading.Event()
    for readable in list(_all):
        readable.drop()
        readable.reset()
    _all.clear()


lifecycle.register("close descriptors", _after_fork_in_child)
lifecycle.register("stop looks for descriptors", _end)
