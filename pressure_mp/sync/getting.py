"""How a handle gets objects: of its buffer or the broker, so that an interrupted get loses none."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from .. import interrupts
from ..buffering import unsent
from ..caller_warnings import warn_caller
from ..drivers import drive, drive_on
from ..effects import AnyOperation
from ..engines import registry
from ..engines.contract.hosts import QueueKey
from ..engines.contract.session import Engine, is_local
from ..exceptions import PressureError, QueueDoesNotExistError, RejectedItemWarning
from ..numeric import integer
from ..operations.control import FIFO
from . import readable
from .absent import Absent, refuse_hooks
from .administered import AdministeredQueue
from .handles import inheritable
from .item import Item
from .readable import Readable

T = TypeVar("T")


class GettingQueue(AdministeredQueue[Item], Generic[Item]):
    """The part of every queue of objects that gets them, or tells when there is one to get."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_hooks(cls)

    def _reset(self) -> None:
        super()._reset()
        self._kept: deque[Item] = deque()  # got by calls that were interrupted
        self._readable: Readable | None = None

    def get(self, block: bool = True, timeout: float | None = None) -> Item:
        """Take the oldest item out of the queue.

        Blocks while the queue is empty: without limit, or at most ``timeout`` seconds; not at all
        when ``block`` is false. Waiting clients are served in the order in which they came.

        Raises Empty when the time is up; if another consumer was using the queue, that is a
        ConsumerInUseError, which is an Empty. Raises ShutDown when the queue is shut down and
        empty. Raises DecodingError for an item that cannot be decoded, and AuthenticationError for
        one that is not signed with a key of this handle; both items are set aside, see
        :meth:`rejected`. Raises QueueDoesNotExistError, HandleClosedError after :meth:`close`, and
        BrokerUnavailable when the broker did not answer for ``reconnect`` seconds. ``timeout``
        limits only the wait for an item: if the connection breaks after the get was sent, finding
        out its outcome takes up to ``reconnect`` seconds longer, so that a short timeout loses no
        item. The chunks of a large item are read after that; the time for this is not part of
        ``timeout``.
        (``queue.Queue.get``; specification: Get)

        With ``prefetch`` this returns an item that was fetched before, and asks the broker only
        when none is left. If this process is killed, items that get returned in the last half
        second, and that were fetched together with others, may be delivered again.
        """
        if timeout is not None and block:
            timeout = self._seconds(timeout)
        if self._readable is not None:
            return self._get_and_look(self._readable, 1, bool(block), timeout)[0]
        incoming = self._incoming
        if incoming is None:
            self._check_open()
        if self._kept and (kept := self._take_kept()):
            return kept[0]
        if incoming is not None:
            found: Item = incoming.get(self, block, timeout)
            return found
        if unsent.senders:
            timeout = self._settle_for(bool(block), timeout)
        return self._get_at_once(bool(block), timeout)

    def get_nowait(self) -> Item:
        """``get(block=False)``."""
        return self.get(False)

    def get_many(
        self, max_items: int, block: bool = True, timeout: float | None = None
    ) -> list[Item]:
        """Take the oldest items, 1 to ``max_items`` of them, and at most 1,000 or about 1 MB.

        Blocks as :meth:`get` does until there is one item; then takes, without waiting, as many
        more as are queued.

        Raises what :meth:`get` raises. Items that cannot be decoded are set aside (see
        :meth:`rejected`). If others can be returned, this warns with RejectedItemWarning; else it
        raises the error of the first.

        With ``prefetch`` this returns items that were fetched before, and asks the broker only when
        none are left; an item that cannot be decoded raises its error when its turn comes.
        """
        self._check_open()
        max_items = integer("max_items", max_items, 1)
        if timeout is not None and block:
            timeout = self._seconds(timeout)
        if self._readable is not None:
            return self._get_and_look(self._readable, max_items, bool(block), timeout)
        return self._get_many(max_items, bool(block), timeout)

    def _get_at_once(self, block: bool, timeout: float | None) -> Item:
        if block and timeout is None:
            return self._handing_out(self._get_one)
        return self._handing_out(partial(self._get_one, block=block, timeout=timeout))

    def _get_and_look(
        self, readable: Readable, limit: int, block: bool, timeout: float | None
    ) -> list[Item]:
        return readable.after(lambda look: self._get_many(limit, block, timeout, look))

    def _get_many(
        self, limit: int, block: bool, timeout: float | None, look: Callable[[], None] | None = None
    ) -> list[Item]:
        """``look`` is called when the items are there. If they do not come to be returned, because
        it was interrupted, they go back all the same."""
        if self._incoming is None:
            self._check_open()
        if self._kept and (kept := self._take_kept()):
            return kept
        if self._incoming is not None:
            return self._incoming.get_many(self, limit, block, timeout, look)
        return self._get_many_at_once(limit, block, timeout, look)

    def _get_many_at_once(
        self, limit: int, block: bool, timeout: float | None, look: Callable[[], None] | None
    ) -> list[Item]:
        if unsent.senders:
            timeout = self._settle_for(block, timeout)

        def receive(claim: Any) -> list[Item]:
            found, problem = self._get_some(limit, block, timeout, claim)
            if problem is not None:
                warn_caller(str(problem), RejectedItemWarning)
            return found

        return self._handing_out(self._looking(receive, look))

    def _take_kept(self) -> list[Item]:
        """The first item that was got by a call that was interrupted, if there is one."""
        try:
            for item in interrupts.pops(self._kept):
                return [item]
        except IndexError:
            pass
        return []

    def _looking(
        self, receive: Callable[[Any], list[Item]], look: Callable[[], None] | None
    ) -> Callable[[Any], list[Item]]:
        """``receive``, and then a look."""
        if look is None:
            return receive
        goes_back = self._goes_back

        def receive_and_look(claim: Any) -> list[Item]:
            found = receive(claim)
            if not goes_back:
                claim.found = found
            look()
            return found

        return receive_and_look

    @property
    def _goes_back(self) -> bool:
        """Whether the engine can take back what an interrupted get took."""
        return self._address.capabilities.persistent

    def _give_up(self, claim: Any) -> None:
        if claim.found is None:
            super()._give_up(claim)
            return
        claim.interrupted()
        claim.end()
        inheritable.add(self)
        # No call from here on: each is kept once, by whichever call and thread that comes first.
        found, claim.found = claim.found, []
        self._kept += found

    def _forget_parent(self) -> None:
        super()._forget_parent()
        self._kept.clear()

    def _get_one(self, claim: Any, block: bool = True, timeout: float | None = None) -> Item:
        operation: AnyOperation[Item] = self._operations.get_object(block, timeout, self._eof)
        return self._getting(operation, claim)

    def _get_some(
        self, limit: int, block: bool, timeout: float | None, claim: Any
    ) -> tuple[list[Item], PressureError | None]:
        """Objects; and the first error, if others could not be used."""
        return self._getting(self._operations.get_objects(limit, block, timeout, self._eof), claim)

    def _getting(self, operation: AnyOperation[T], claim: Any) -> T:
        """Run an operation that gets something for good, on the session that is the claim."""
        if self._eof:
            with self._here:
                return drive_on(operation, claim, self._while_open)
        return drive_on(operation, claim, self._watching)

    def _watching(self) -> contextlib.AbstractContextManager[None]:
        """Requeue a dead process's items while a get waits. Raises HandleClosedError once the
        handle is closed."""
        always = self._while_open()
        return self._here if self._operations.discipline == FIFO else always

    def _receive(self, claim: Any) -> Any:
        return self._getting(self._operations.get(False, None, self._eof), claim)

    def _accept_received(self, received: Any, claim: Any) -> Item:
        found: Item = drive_on(self._operations.accept(received), claim)
        return found

    def fileno(self) -> int:
        """A file descriptor that is readable while the queue has an item to get.

        It is for ``select``, ``selectors``, ``multiprocessing.connection.wait`` and asyncio's
        ``add_reader``. It is also readable when the queue is empty and shut down, or was deleted:
        then get raises that. The first call makes it, for this process and this handle: a forked
        child calls this again. Blocks for one round trip to the broker.

        From then on a thread, one for all queues of the process, asks the broker every 0.03
        seconds, and every 0.01 seconds for a second after a change; and each get through this
        handle asks again before it returns, so that the descriptor is not readable because of the
        item that was just got. It may be readable for about 0.01 seconds after another consumer got
        the last item: with several consumers use :meth:`get_nowait`. Raises HandleClosedError, an
        OSError.
        """
        return self._reader.fileno()

    @property
    def _reader(self) -> Readable:
        """As of ``multiprocessing.Queue``, for programs that wait for several queues at once; see
        :meth:`fileno`."""
        return readable.of(self)

    @property
    def _poll(self) -> Callable[..., bool]:
        return self._reader.poll

    _writer = Absent("a put goes to the broker at once; full() tells whether it would wait")
    _rlock = Absent("the broker decides whose turn it is")
    _wlock = Absent("the broker decides whose turn it is")
    _sem = Absent("the bound is at the broker: see maxsize and full()")
    _notempty = Absent("put() sends the item, or with buffering a thread does; see flush()")
    _buffer = Absent("put() sends the item, or with buffering a thread does; see flush()")
    queue = Absent("the items are at the broker: purge() drops them, peek() shows the next")
    mutex = Absent("each method is one step at the broker; purge() drops all items in one")
    not_empty = Absent("get() waits for an item, and fileno() is readable when there is one")
    not_full = Absent("put() waits for space; full() tells whether it would")
    all_tasks_done = Absent("join() waits for them")

    def _asked_together(self) -> tuple[Engine, QueueKey] | None:
        """As of :class:`~.readable.WatchedHandle`."""
        binding = self._binding
        if self._kept or self._incoming or binding is None:
            return None
        if is_local(binding) and binding.are_here:
            return None
        if self._incoming is not None:
            self._incoming.before_look(self)
        return registry.engine(self._address), self._queue_key

    def _may_get(self) -> bool:
        """Whether a get would not wait, but give an item or raise that there is none to come."""
        if self._kept or self._incoming:
            return True
        # The next look tries again: this one must not keep a get waiting, or other queues.
        at_once = self._options._replace(reconnect=0)
        try:
            if self._binding is None:
                self._attach()
            if self._incoming is not None:
                self._incoming.before_look(self)
            binding = self._bind(registry.engine(self._address), at_once)
            return drive(self._operations.may_get(), binding.session())
        except QueueDoesNotExistError:
            return True
