"""A handle to a queue of items that has some of them on this side of the wire."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..buffering import unsent
from ..deadlines import deadline, seconds_left
from ..effects import AnyOperation
from ..encoding.codec import Codec
from ..encoding.large import Large
from ..engines import registry
from ..engines.contract.session import is_local
from ..exceptions import ArgumentError
from ..operations.control import FIFO
from ..operations.objects import ObjectOperations
from .arguments import check_ahead
from .item_handles import ItemHandle

if TYPE_CHECKING:  # a queue without buffers need not load them
    from ..buffering.buffers import Buffers
    from ..buffering.handle import FetchedAhead, Incomings
    from ..buffering.incoming import Incoming
    from ..buffering.outgoing import Outgoing

T = TypeVar("T")

#: How many items may wait to be sent, where nothing is said.
_BUFFERING = 4000
#: With a smaller bound nothing is gained by reading ahead.
_LEAST_BOUND = 4
#: The environment variable that says it for a program that does not.
_VARIABLE = "PRESSURE_BUFFERING"


class BufferedItemHandle(ItemHandle):
    """What was put and is not yet sent, what was fetched and is not yet handed out; if anything."""

    _operations: ObjectOperations
    _codec: Codec[Any]
    _eof: bool

    #: How many items may wait to be sent, whether that was said, and how many may be fetched ahead.
    _sends_ahead = 0
    _is_buffering_stated = False
    _fetches_ahead = 0
    #: Whether it reads ahead as far as nobody can tell.
    _reserves = False
    #: Whether the queue had a bound when this handle was made.
    _had_bound = False

    #: Whether what is put is sent by a thread, unless it is stated or the queue says otherwise.
    _puts_in_background = False
    #: Whether gets read ahead, unless it is stated or the queue says otherwise.
    _reserves_unasked = False

    def _reset(self) -> None:
        super()._reset()
        self._was_put_to = False
        self._make_buffers()

    def _choose_buffers(self, buffering: int | None, prefetch: int | None, bound: int) -> None:
        """Have what was asked for, or what such a queue has."""
        self._had_bound = bound > 0
        stated = self._stated(buffering)
        self._is_buffering_stated = stated is not None
        self._sends_ahead = self._unasked(bound) if stated is None else stated
        self._fetches_ahead = check_ahead("prefetch", prefetch or 0)
        may = prefetch is None and self._reserves_unasked and not self._eof
        self._reserves = may and self._operations.discipline == FIFO and self._is_private(bound)
        stays = self._anonymous and may and stated is None and not self._opens_later
        self._options = self._options._replace(shares_memory=stays and not self._options.durability)
        for what, number in (("buffering", buffering), ("prefetch", prefetch)):
            if number and self._operations.discipline != FIFO:
                raise ArgumentError(
                    f"a {type(self).__name__} cannot have {what}={number}: it would serve in "
                    "another order. Leave it out; put_many and get_many are fast too"
                )
        self._make_buffers()

    def _stated(self, buffering: int | None) -> int | None:
        """How many items may wait to be sent, if the program or the environment says so."""
        if buffering is not None:
            return check_ahead("buffering", buffering)
        said = os.environ.get(_VARIABLE)
        if not said or not self._may_put_in_background:
            return None
        if not said.isdecimal():
            raise ArgumentError(f"{_VARIABLE} is a number of items, not {said!r}")
        return check_ahead(_VARIABLE, int(said))

    def _unasked(self, bound: int) -> int:
        """How many of them where nobody says so."""
        may = not bound and self._is_private(bound) and self._may_put_in_background
        return _BUFFERING if may and not self._options.durability else 0

    def _is_private(self, bound: int) -> bool:
        """Whether it is one of those queues that do more than is said: of which this program has
        all handles, long enough, and not in the memory of this process."""
        is_long = not bound or (bound >= _LEAST_BOUND and not self._opens_later)
        return self._anonymous and is_long and self._address.capabilities.persistent

    @property
    def _may_put_in_background(self) -> bool:
        return self._puts_in_background and self._operations.discipline == FIFO

    def _make_buffers(self) -> None:
        self._buffers: Buffers | None = None
        self._outgoing: Outgoing | None = None
        self._incoming: Incomings | None = None
        if self._opens_later:
            return  # whoever opens it has buffers of its own
        if self._sends_ahead or self._fetches_ahead or self._reserves:
            from ..buffering.buffers import Buffers

            if self._fetches_ahead:
                self._incoming = self._make_incoming()
            elif self._reserves:
                from ..buffering.reserving import Reserving

                self._incoming = Reserving(self)
            self._buffers = Buffers(
                self,
                self._incoming,
                self._sends_ahead,
                self._is_buffering_stated,
            )
            self._outgoing = self._buffers.outgoing

    def _put_at_once(self) -> None:
        self._outgoing = None

    def _make_incoming(self) -> Incoming:
        from ..buffering.for_good import IncomingForGood

        return IncomingForGood(self, self._fetches_ahead)

    def _putting(
        self,
        operation: AnyOperation[T],
        *,
        connection: object | None = None,
    ) -> T:
        """Run an operation that puts something through this handle; with a ``connection``, in its
        transaction, which waits for no space."""
        self._was_put_to = True
        if connection is None:
            self._settle_reader()
        if self._eof:
            operation = self._operations.as_producer(self._here, self._token, operation)
        if connection is not None:
            return self._run_in(connection, operation)
        return self._run(operation)

    def _put_here(self, item: bytes | Large) -> bool:
        """Add an item to a queue in shared memory; False when the queue has no space, or is no
        longer there, or while something that this process put before is unsent."""
        if unsent.senders or type(item) is not bytes:
            return False
        binding = self._binding
        return is_local(binding) and binding.put_here(item)

    def _settle_reader(self) -> None:
        """What this handle read ahead and handed out has left the queue: so no put here waits for
        space that there is already."""
        if self._reserves and self._had_bound and self._incoming is not None:
            self._incoming.before_look(self)

    def _get_at_once(self, block: bool, timeout: float | None) -> Any:
        """The next item of the broker, whatever was read ahead; what was put before is settled."""
        raise NotImplementedError

    def _get_many_at_once(
        self, limit: int, block: bool, timeout: float | None, look: Callable[[], None] | None
    ) -> list[Any]:
        """The next items of the broker, and a ``look`` at it."""
        raise NotImplementedError

    def _receive(self, claim: Any) -> Any:
        """What is there, as it is, for a buffer that has it decoded by :meth:`_accept_received`."""
        raise NotImplementedError

    def _accept_received(self, received: Any, claim: Any) -> Any:
        """The object in that."""
        raise NotImplementedError

    def _settle(self, end: float | None = None) -> None:
        """What this process put into the queue is where it can be got, as far as there is space."""
        if self._outgoing:
            self._outgoing.before_get()
            self._outgoing.settle(end=end)
        if unsent.senders:
            unsent.settle(registry.engine(self._address), self._name, end)

    def _space(self, incoming: FetchedAhead | None) -> float:
        """How many items there is space for. What a handle fetched ahead is no longer queued: so it
        goes back before the queue is found full."""
        if self._eof:
            self._run_at_once(self._operations.register(self._here, self._token))
        self._settle_reader()
        stats = self._run_at_once(self._operations.stats())
        if incoming and 0 < stats.maxsize <= stats.length + len(incoming):
            incoming.give_back(self, incoming.patience)
            stats = self._run_at_once(self._operations.stats())
        if stats.closed:
            return 0  # so a put at the broker says it
        if not stats.maxsize:
            return math.inf
        return max(stats.maxsize - stats.length - len(incoming or ()), 0)

    def _settle_for(self, block: bool, timeout: float | None) -> float | None:
        """What this process put into the queue is where it can be got, as far as there is space.
        Returns what is left of the ``timeout``."""
        end = deadline(block, timeout) if block else None
        self._settle(end)
        return seconds_left(end)

    def flush(self) -> None:
        """Block until all items that were put through this handle are at the broker.

        There is no time limit. Without ``buffering`` there is nothing to wait for. Raises the error
        with which the broker refused an item since the last call (see :meth:`put`). The error's
        ``rest`` has the items that were put and not sent, in order; after BrokerUnavailable or
        NotDurable up to 1,000 of these may be queued too.
        """
        if self._buffers is not None:
            self._buffers.flush(self)

    def join_thread(self) -> None:
        """Do the same as :meth:`flush` (``multiprocessing.Queue.join_thread``)."""
        self.flush()

    def cancel_join_thread(self) -> None:
        """Do not wait in :meth:`close`, or at the end of the process, for items to be sent.

        Items that are still in the buffer then may be lost.
        (``multiprocessing.Queue.cancel_join_thread``)
        """
        if self._buffers is not None:
            self._buffers.cancel_join()
