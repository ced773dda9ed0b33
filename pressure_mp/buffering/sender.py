"""Send in the background: by a thread for each broker, in the order of the process's puts."""

from __future__ import annotations

import threading
import time
import weakref
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .. import interrupts, lifecycle
from ..engines.contract.session import Engine
from ..handles import unsent
from .at_once import PutsAtOnce
from .outbox import Outbox, Pending, Run

if TYPE_CHECKING:
    from ..handles.objects import ObjectAttachment

#: Seconds for which the thread waits for more to send before it ends.
_LINGER = 1.0
#: Seconds until an ending process first asks whether the broker answers.
_FIRST_LOOK = 0.05


class Puts(Protocol):
    """The items that a handle put, as its sender sees them."""

    @property
    def pending(self) -> Pending:
        """The items."""

    def begin(self, queue: ObjectAttachment) -> Any:
        """Prepare to send the first item, if there is one. Does no I/O."""

    def send(self, run: Run, queue: ObjectAttachment, waits: bool) -> bool:
        """Send the next items of a run. False if the queue is full, unless this ``waits``."""

    def settle(self, block: bool = False, end: float | None = None) -> bool:
        """Wait until the broker has the items; unless ``block``, or until the queue is full."""

    def settle_for_others(self, end: float) -> bool:
        """Do what :meth:`settle` does while the broker answers; return whether it answers."""

    def leave(self, look: float) -> None:
        """The process ends: wait until the items are sent, and from the moment ``look`` on ask
        whether the broker answers."""


class Owner(NamedTuple):
    """The thread that sends runs of items; it lives as long as it has something to send."""

    puts: Puts
    queue: ObjectAttachment


class Sender(Outbox):
    """Sends the items of an outbox, in a thread.

    There is one for each broker, :func:`of`; and one for each queue that it found full, which is
    waited for there.
    """

    def __init__(self, engine: Engine, home: Sender | None = None) -> None:
        self.engine = engine
        self._home = home
        super().__init__(is_apart=home is not None)
        _all.add(self)

    def reset(self) -> None:
        super().reset()
        #: Of all that is sent to the broker.
        self.lock: threading.RLock = threading.RLock() if self._home is None else self._home.lock
        #: The threads that send, none of which may wait for what is to be sent.
        self._at_work: set[int] = set() if self._home is None else self._home._at_work
        self._thread: threading.Thread | None = None
        self._rests = True
        self._awake: SimpleQueue[None] = SimpleQueue()
        self.at_once = PutsAtOnce()

    def puts_here(self, queue: ObjectAttachment, item: bytes) -> bool:
        """Add an item to its queue at once, if nothing that was put before is still to be sent, and
        :class:`PutsAtOnce` allows it."""
        return self._rests and self.at_once.put(queue, item)

    def line_up(self, puts: Puts, queue: ObjectAttachment) -> None:
        """Send the items that a handle appended, after all items that were put before."""
        pending = puts.pending
        with self.lock:
            if self.last is pending:
                return
            self.last = None  # if this is interrupted, the next one begins again
            unsent.senders.add(self)
            run = self.add_run(pending, Owner(puts, queue))
            # After an interrupted call there may be a run before it, and that may be begun.
            if self._rests and not self.is_apart and self.is_first(run):
                self._send_ahead(run)
            if not self._rests or self._wake():
                self.last = pending
                return
        me = threading.get_ident()
        self._at_work.add(me)
        try:
            self._send_all()
        finally:
            self._at_work.discard(me)

    @property
    def is_inside(self) -> bool:
        """Whether the calling thread sends, or is in the midst of a put: as a signal handler, or a
        finalizer, that cannot wait for the items to be sent."""
        return threading.get_ident() in self._at_work or interrupts.is_held(self.lock)

    def _send_all(self) -> None:
        while not self._is_done():
            self._send_next()

    def _send_ahead(self, run: Run) -> None:
        """Send the first item; the thread will read the reply. Until that runs, other threads may
        take long, and the process may be killed."""
        puts, queue = run.owner
        run.begun = begun = puts.begin(queue)
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
        """Send all that comes; end when nothing comes for some time."""
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
        """Send one batch."""
        with self.lock:
            run = self.next_run()
        if run is None:
            return
        puts, queue = run.owner
        if not puts.send(run, queue, self.is_apart):
            with self.lock:
                apart = Sender(self.engine, self)
                self.set_apart(run.pending, apart)
            apart.line_up(puts, queue)

    def _is_done(self) -> bool:
        """Rest, unless there is something to send."""
        with self.lock:
            if not self.rest():
                return False
            unsent.senders.discard(self)
            self._rests = True
            return True

    def settle(self, queue: str | None = None, end: float | None = None) -> None:
        """See :class:`~pressure_mp.handles.unsent.Sending`."""
        for puts in self._unsent():
            if queue in (None, puts.pending.queue):
                puts.settle(end=end)

    def settle_for_others(self, end: float) -> None:
        """See :class:`~pressure_mp.handles.unsent.Sending`."""
        if self.is_inside:
            return
        for puts in self._unsent():
            if not puts.settle_for_others(end):
                return

    def _unsent(self) -> set[Puts]:
        with self.lock:
            return {owner.puts for owner in self.owners}


_all: weakref.WeakSet[Sender] = weakref.WeakSet()
_senders: weakref.WeakKeyDictionary[Engine, Sender] = weakref.WeakKeyDictionary()


def of(engine: Engine) -> Sender:
    """The sender of this process to a broker."""
    found = _senders.get(engine)
    if found is None:
        found = _senders.setdefault(engine, Sender(engine))
    return found


#: What all handles of this process put.
puts: weakref.WeakSet[Puts] = weakref.WeakSet()


def _leave() -> None:
    look = time.monotonic() + _FIRST_LOOK
    for each in list(puts):
        each.leave(look)


def _after_fork_in_child() -> None:
    for sender in list(_all):
        sender.reset()


lifecycle.register("forget senders", _after_fork_in_child)
lifecycle.register("send puts", _leave)
