"""What sends in the background: a thread for each broker, in the order of the process's puts."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .. import interrupts, lifecycle
from ..effects import Ask
from ..engines.contract.items import Added
from ..engines.contract.session import Engine, Session, is_local
from ..handles import unsent

if TYPE_CHECKING:
    from ..handles.objects import ObjectAttachment

#: Seconds for which the thread waits for more to send before it ends.
_LINGER = 1.0
#: Puts of which more than so many come within so many seconds behind each other are sent together;
#: and so many more, where somebody waited for what was put.
_MANY, _SOON, _PATIENT = 3, 2e-5, 100
#: Seconds until an ending process first asks whether the broker answers.
_FIRST_LOOK = 0.05


class Buffer(Protocol):
    """The items that one handle put."""

    sender: Sender

    @property
    def queue(self) -> str:
        """The queue's name."""

    @property
    def number_put(self) -> int:
        """How many there ever were."""

    @property
    def number_sent(self) -> int:
        """How many of these are no longer here."""

    def begin(self, queue: ObjectAttachment) -> Begun | None:
        """What sends the first of those that are here, if there is one. Does no I/O."""

    def send(self, run: Run, waits: bool) -> bool:
        """Send what is begun of a run, else a batch of it, or as much of that as there is space
        for. Of a full queue False, unless it ``waits`` for space."""

    def settle(self, block: bool = False, end: float | None = None) -> bool:
        """Wait until the broker has them; unless ``block``, or until their queue is full."""

    def settle_for_others(self, end: float) -> bool:
        """As :meth:`settle`, and only while the broker answers; returns whether it does."""

    def leave(self, look: float) -> None:
        """The process ends: wait until they are sent, and from the moment ``look`` on ask whether
        the broker answers."""


class Begun(NamedTuple):
    """The first of some items, which may have been sent already."""

    items: list[bytes]
    session: Session
    putting: Ask[Added]


class Run:
    """Items of one buffer that were put one after the other, and none of another in between."""

    __slots__ = ("begun", "buffer", "end", "queue")

    def __init__(self, buffer: Buffer, queue: ObjectAttachment) -> None:
        self.buffer = buffer
        #: Kept alive as long as it has something to send.
        self.queue = queue
        #: The number of the item behind the last; of the last run there is no end yet.
        self.end = math.inf
        self.begun: Begun | None = None

    @property
    def is_sent(self) -> bool:
        """Whether there is nothing to send of it at present."""
        there = min(self.end, self.buffer.number_put)
        return self.begun is None and self.buffer.number_sent >= there


class Sender:
    """Sends the items of buffers.

    There is one for each broker, :func:`of`; and one for each queue that it found full, which is
    waited for there, so that the other queues need not wait too.
    """

    def __init__(self, engine: Engine, home: Sender | None = None) -> None:
        self.engine = engine
        self._home = home
        self.reset()
        _all.add(self)

    def reset(self) -> None:
        """One that never sent: a new one, or that of a forked child."""
        #: Of all that is sent to the broker.
        self.lock: threading.RLock = threading.RLock() if self._home is None else self._home.lock
        #: Those who send, of which none may wait for what is to be sent.
        self._at_work: set[int] = set() if self._home is None else self._home._at_work
        self._runs: deque[Run] = deque()
        #: The buffer in which it is enough to add an item for it to be sent in its turn.
        self.last: Buffer | None = None
        self._thread: threading.Thread | None = None
        self._rests = True
        self._awake: SimpleQueue[None] = SimpleQueue()
        #: When a put last did without the thread, on the monotonic clock, and how many came soon
        #: after one that did.
        self._put_here = -math.inf
        self._hasty = 0

    def puts_here(self, queue: ObjectAttachment, item: bytes) -> bool:
        """Add an item to its queue at once, if nothing that was put before is still to be sent, and
        the engine can do so without a word to the broker. Not while one put soon follows the other:
        then they are faster together."""
        binding = queue.binding
        if not self._rests or not is_local(binding):
            return False
        gap = time.monotonic() - self._put_here
        self._hasty = self._hasty + 1 if gap < _SOON else 0
        if self._hasty > _MANY:
            return False
        is_done = binding.put_here(item)
        self._put_here = time.monotonic()
        return is_done

    def calm(self) -> None:
        """Somebody waits for what was put: the next puts are not sent together."""
        self._hasty = -_PATIENT

    def line_up(self, buffer: Buffer, queue: ObjectAttachment) -> None:
        """See to it that what was added to a buffer is sent, after all that was put before."""
        with self.lock:
            if self.last is buffer:
                return
            self.last = None  # if this is interrupted, the next one begins again
            run = Run(buffer, queue)
            unsent.senders.add(self)
            self._runs += (run,)
            self._close_before(run)
            # After an interrupted call there may be a run before it, and that may be begun.
            if self._rests and self._home is None and self._runs[0] is run:
                self._send_ahead(run)
            if not self._rests or self._wake():
                self.last = buffer
                return
        me = threading.get_ident()
        self._at_work.add(me)
        try:
            self._send_all()
        finally:
            self._at_work.discard(me)

    def _close_before(self, run: Run) -> None:
        """What is added to the buffers of the runs before this one is in a run behind it."""
        place = len(self._runs) - 1
        while self._runs[place] is not run:  # a signal handler came in between
            place -= 1
        while place > 0 and self._runs[place - 1].end == math.inf:
            place -= 1
            before = self._runs[place]
            before.end = before.buffer.number_put

    @property
    def is_inside(self) -> bool:
        """Whether the calling thread sends, or is in the midst of a put: as a signal handler, or a
        finalizer, that cannot wait for what is to be sent."""
        return threading.get_ident() in self._at_work or interrupts.is_held(self.lock)

    def _send_all(self) -> None:
        while not self._rest():
            self._send_next()

    def _send_ahead(self, run: Run) -> None:
        """Send the first item; the thread will read the reply. Until that runs, other threads may
        take long, and the process may be killed."""
        run.begun = begun = run.buffer.begin(run.queue)
        if begun is not None:
            begun.session.send_ahead(begun.putting.request)

    def _wake(self) -> bool:
        """Have a thread send. False when the interpreter is ending."""
        lifecycle.begin_use()
        if self._thread is not None:
            self._awake.put(None)
        elif not self._start():
            return False
        self._rests = False
        return True

    def _start(self) -> bool:
        name = f"pressure_mp {self.engine.address.url}"
        try:
            interrupts.start(threading.Thread(target=self._feed, name=name, daemon=True))
        except RuntimeError:
            return False
        return True

    def prepare(self) -> None:
        """Something will soon be put: to start a thread takes longer than to send it."""
        with self.lock:
            if self._thread is None and self._rests:
                self._start()

    def _feed(self) -> None:
        """What the thread does: send all that comes; end when nothing comes for some time."""
        with self.lock:
            if self._thread is not None:
                return
            self._thread = threading.current_thread()
            self._at_work.add(threading.get_ident())
        while True:
            self._send_all()
            try:
                self._awake.get(timeout=_LINGER)
            except Empty:
                with self.lock:
                    if self._rests:
                        self._thread = None
                        self._at_work.discard(threading.get_ident())
                        return

    def _send_next(self) -> None:
        """One batch."""
        with self.lock:
            if not self._runs:
                return
            run = self._runs[0]
            buffer = run.buffer
            if self._is_over(run):
                if len(self._runs) > 1:
                    del self._runs[0]
                return
        if not buffer.send(run, self._home is not None):
            self._set_apart(buffer, run.queue)

    def _set_apart(self, buffer: Buffer, queue: ObjectAttachment) -> None:
        """Its queue is full: what is in a buffer is sent by one of its own."""
        with self.lock:
            buffer.sender = Sender(self.engine, self)
            if self.last is buffer:
                self.last = None
        buffer.sender.line_up(buffer, queue)

    def _rest(self) -> bool:
        """Be idle, unless there is something to send."""
        with self.lock:
            if self._has_more:
                return False
            last, self.last = self.last, None
            # What is put after this is lined up.
            if self._has_more:
                self.last = last
                return False
            if self._home is not None and last is not None:
                last.sender = self._home
            self._runs.clear()
            unsent.senders.discard(self)
            self._rests = True
            return True

    @property
    def _has_more(self) -> bool:
        return len(self._runs) > 1 or any(not self._is_over(run) for run in self._runs)

    def _is_over(self, run: Run) -> bool:
        return run.is_sent or (run.buffer.sender is not self and run.begun is None)

    def settle(self, queue: str | None = None, end: float | None = None) -> None:
        """As of :class:`~.unsent.Sending`."""
        for buffer in self._unsent():
            if queue in (None, buffer.queue):
                buffer.settle(end=end)

    def settle_for_others(self, end: float) -> None:
        """As of :class:`~.unsent.Sending`."""
        if self.is_inside:
            return
        for buffer in self._unsent():
            if not buffer.settle_for_others(end):
                return

    def _unsent(self) -> set[Buffer]:
        with self.lock:
            return {run.buffer for run in self._runs}


_all: weakref.WeakSet[Sender] = weakref.WeakSet()
_senders: weakref.WeakKeyDictionary[Engine, Sender] = weakref.WeakKeyDictionary()


def of(engine: Engine) -> Sender:
    """The one that sends to a broker what this process puts."""
    found = _senders.get(engine)
    if found is None:
        found = _senders.setdefault(engine, Sender(engine))
    return found


#: Those of all handles of this process.
buffers: weakref.WeakSet[Buffer] = weakref.WeakSet()


def _leave() -> None:
    look = time.monotonic() + _FIRST_LOOK
    for buffer in list(buffers):
        buffer.leave(look)


def _after_fork_in_child() -> None:
    for sender in list(_all):
        sender.reset()


lifecycle.register("forget senders", _after_fork_in_child)
lifecycle.register("send puts", _leave)
