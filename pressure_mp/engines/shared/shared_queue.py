"""A queue whose items are in shared memory until it needs the broker: where they are, and how they
move."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from ...exceptions import BrokerError, BrokerUnavailable
from ..contract.items import AcknowledgeReply, Hold, Put, SetAside, Taken
from ..contract.replies import InUse, Outcome
from ..contract.session import AsyncSession
from . import ring_files
from .deliveries import HoldingRing
from .items import MOVE, TakenHere, at_broker_until
from .layout import MOVED
from .shared_items import Held, Moved, SharedItems

#: The problem where a queue has no file.
NO_FILE = "has no file there"


class Below(Protocol):
    """The queue at the broker."""

    def session(self) -> Any:
        """See :class:`Binding`."""

    def asession(self) -> AsyncSession:
        """See :class:`Binding`."""

    def add_back(self, items: list[bytes], end: float | None) -> None:
        """Put taken items in front. Blocks and raises as :meth:`add_moved` does."""

    def add_moved(self, moved: Moved, end: float | None) -> None:
        """Add the moved items that were not yet added, beyond the bound if necessary. Does nothing
        when the queue does not exist any more. ``end`` is as in :meth:`Session.call`. Raises
        BrokerUnavailable, BrokerError."""

    def add_held(self, held: list[Held], end: float | None) -> None:
        """Note moved items as in flight. Blocks and raises as :meth:`add_moved` does."""

    def were_moved(self, end: float | None) -> bool:
        """Tell whether :meth:`add_moved` was ever called; raises what :meth:`add_moved` raises."""


class SharedQueue:
    """A queue with items in shared memory."""

    def __init__(
        self, below: Below, name: str, lease: int, ring: HoldingRing | None, problem: str = ""
    ) -> None:
        """``problem``: the reason why this process cannot see the items, which are in shared
        memory."""
        self.below = below
        self.problem = problem
        self.name = name
        self._lease = lease
        self._sign: Callable[[bytes], bytes] | None = None
        self.items = self._items_in(ring)

    def _items_in(self, ring: HoldingRing | None) -> SharedItems | None:
        # When the items were moved only the file is left, which is removed with the queue.
        if ring is None or ring.state == MOVED:
            return None
        return SharedItems(ring, self._lease, self._set_aside)

    def make(self, bound: int) -> None:
        """Keep the items of a queue that was created in shared memory, if the host has that."""
        self._use(self._items_in(ring_files.create(self.name, bound)))
        self.problem = ""

    def _use(self, items: SharedItems | None) -> None:
        self.items = items
        if self._sign is not None:
            self.sign_with(self._sign)

    @property
    def are_here(self) -> bool:
        return self.items is not None and self.items.state != MOVED

    def put_here(self, item: bytes) -> bool:
        items = self.items
        return items is not None and items.put_one(item)

    def hold_here(self, hold: Hold) -> Taken | None:
        """See :class:`Local`."""
        taken = None if self.items is None else self.items.take_one(hold, None)
        return taken if type(taken) is Taken else None

    def acknowledge_here(self, owner: str, number: int) -> AcknowledgeReply | None:
        """See :class:`Local`."""
        reply = MOVE if self.items is None else self.items.acknowledge(owner, number)
        return None if reply is MOVE else reply

    def requeue_lost(self) -> None:
        """See :class:`Local`."""
        if self.items is not None and self.are_here:
            self.items.requeue_lost()

    def sign_with(self, sign: Callable[[bytes], bytes]) -> None:
        self._sign = sign
        if self.items is not None:
            self.items.ring.sign = sign
            self.items.ring.note_signed()

    def signed(self, request: Any) -> Any:
        """Convert a request for the broker, wherever the items are now."""
        sign, items = self._sign, self.items
        if sign is None and items is not None and items.ring.is_signed:
            sign = items.sign
        if sign is not None:
            if type(request) is Put:
                return request._replace(items=list(map(sign, request.items)))
            if type(request) is SetAside:
                return request._replace(item=sign(request.item))
        return request

    def move_to_broker(self, end: float | None = None) -> None:
        """See :class:`Local`; ``end`` is as in :meth:`Session.call`."""
        self.check(end)
        if not self.move_until(at_broker_until(end), end):
            raise BrokerUnavailable(
                f"another process moves the items of queue {self.name!r} to the broker, and is not "
                "done yet: try again"
            )

    def move_until(self, limit: float | None, end: float | None) -> bool:
        """Move the items to the broker, or wait until another process has moved them. Returns
        whether all are there at ``limit``, on the monotonic clock. ``end`` is as in
        :meth:`Session.call`."""
        if self.items is None or self.items.state == MOVED:
            return True  # without the locks of the file
        finish = partial(self._finish_move, end)
        return self.items.move(lambda moved: self.below.add_moved(moved, end), finish, limit)

    def _set_aside(self, item: bytes) -> None:
        session = self.below.session()
        try:
            session.call(SetAside(item))
        finally:
            session.end()

    def _finish_move(self, end: float | None, held: list[Held], done: list[Any]) -> None:
        session = self.below.session()
        try:
            if held:
                self.below.add_held(held, end)
            for request in done:
                if type(session.call(request, end)) is InUse:
                    raise BrokerUnavailable(
                        f"queue {self.name!r} was shut down in shared memory, and is in use at the "
                        "broker: try again"
                    )
        finally:
            session.end()

    def give_back(self, taken: TakenHere, if_open: bool, end: float | None) -> Any:
        """Put items in front that were taken from shared memory."""
        assert self.items is not None
        reply = self.items.give_back(taken.items, if_open)
        if reply is MOVE:
            self.move_to_broker(end)
            if taken.items:
                self.below.add_back(self.items.signed(taken.items), end)
                del taken.items[:]
            reply = Outcome.DONE
        return reply

    def ended(self) -> None:
        """Remove the items: the queue does not exist any more."""
        if self.items is not None:
            self.items.end()
        ring_files.remove(self.name)

    def check(self, end: float | None = None) -> None:
        """Look again for items that could not be seen. Raises BrokerError if this process cannot
        see them now, and the broker does not have them either; ``end`` is as in
        :meth:`Session.call`."""
        if not self.problem:
            return
        ring, problem = look(self.name)
        self.problem = "" if ring is not None else problem or NO_FILE
        self._use(self._items_in(ring))
        # Their file may have been removed; a new process cannot see there that they were moved.
        if self.problem and self.below.were_moved(end):
            self.problem = ""
        if self.problem:
            raise BrokerError(
                f"queue {self.name!r} has its items in memory that the processes of one user on "
                f"one host share, and this process cannot see them: {self.problem}. Create the "
                f"queue with {ring_files.VARIABLE}=0 in the environment"
            )


def look(name: str) -> tuple[HoldingRing | None, str]:
    """Find the file of a queue; return the reason if there is none that this process can see."""
    try:
        return ring_files.find(name), ""
    except OSError as error:
        return None, str(error)
