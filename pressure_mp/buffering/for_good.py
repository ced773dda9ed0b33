"""Fetches ahead from a queue whose items are done when they are handed out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import interrupts
from ..deadlines import deadline, seconds_left
from ..drivers import drive, noting
from ..effects import Operation
from ..engines.contract.items import MOST_BYTES, MOST_ITEMS
from ..engines.contract.session import Session
from ..exceptions import Empty, PressureError, QueueDoesNotExistError, ShutDown
from ..operations.deliveries import Delivery
from .incoming import Incoming, decoded

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from ..handles.objects import ObjectAttachment

Fetch = Callable[[], Operation[list[bytes] | None]]


class _Reader:
    """One of a handle's two readers, and the items of its last call that was answered."""

    def __init__(self) -> None:
        self.name = ""
        self.call = 0
        self.number = self.told = 0  # of the items; and how many of them were told as handed out
        self.items: list[bytes] = []  # all of them, until it is their turn
        self.asks = False  # the next call may have been made
        self.asked: tuple[Session, Fetch] | None = None  # then: its reply is still to be read

    @property
    def holds(self) -> bool:
        """Whether the broker may keep any items for it."""
        return self.asks or self.told < self.number

    def answer(self, items: list[bytes]) -> None:
        """Note the items of the next call."""
        number = len(items)
        # All of it, or nothing: there is no call.
        self.call += 1
        self.items, self.number, self.told = items, number, 0
        self.asks, self.asked = False, None


class IncomingForGood(Incoming):
    """Fetches from a queue whose items are done when they are handed out.

    The reader's next call tells the broker so, and until then this process's presence.

    While the items of one call are handed out, the next ones may be on their way. Their call does
    not tell what was handed out of the first: so another reader makes it, and the two take turns.
    """

    def get(self, queue: ObjectAttachment, block: bool, timeout: float | None) -> Any:
        try:
            for item in self._pops:
                return item
        except IndexError:
            pass
        return self._get_with_care(queue, block, deadline(block, timeout))

    def forward(
        self,
        queue: ObjectAttachment,
        write: Callable[[list[Any]], int],
        block: bool,
        timeout: float | None,
    ) -> bool:
        """Give all items that are here to ``write``, which returns how many of the first ones are
        done: these are handed out, the others stay. Fetches when there is none. For one thread.
        Returns False if the next item is not to be fetched ahead. Raises as ``get`` does.
        """
        if not self._ahead:
            queue.check_open()
            if not self._make_ready(queue, block, deadline(block, timeout)):
                return False
        for _ in range(write(list(self._ahead))):
            del self._ahead[0]
        return True

    def reset(self) -> None:
        super().reset()
        self._turn, self._next = _Reader(), _Reader()
        self._out: int | None = None  # how many stay out of a call that goes back

    def __len__(self) -> int:
        return self._number_ready + len(self._turn.items) + len(self._next.items)

    @property
    def holds(self) -> bool:
        return self._turn.holds or self._next.holds

    def before_look(self, queue: ObjectAttachment) -> None:
        """Hear the reply to what was asked for: its items are counted beside the broker's."""
        if self._next.asked is None:
            return
        for held in interrupts.attempts(self._lock, self.patience):
            if not held:
                return
            try:
                self._hear()
            finally:
                self._lock.release()

    def _hand_out(self) -> Any:
        for item in self._pops:
            return item
        raise IndexError

    def _decode_next(self, queue: ObjectAttachment) -> None:
        try:
            item = queue.run_at_once(queue.operations.accept(self._raw[0].item))
        except PressureError:
            del self._raw[0]
            raise
        self._ahead += (item,)
        del self._raw[0]

    # Fetching

    def _fetch(
        self, queue: ObjectAttachment, presence: Presence, block: bool, end: float | None
    ) -> bool:
        if not self._turn.name:
            self._turn.name, self._next.name = self._name, f"{self._name}.2"
        self._hear()
        if not self._turn.items:  # else a call was interrupted before it could hand them out
            if self._next.items:
                self._turn, self._next = self._next, self._turn
            else:
                self._tell(self._next, presence, queue.run_at_once)  # this one may wait for long
                if not self._fetch_now(queue, presence, block, end):
                    return False
        self._ask_ahead(queue, presence)  # first: to decode the items takes time
        items = self._turn.items
        objects = decoded(queue, items)
        ready = [] if objects is None else objects
        raw = [Delivery(0, item) for item in items] if objects is None else []
        # All of it, or nothing: there is no call.
        self._turn.items = []
        self._ahead += ready
        self._raw += raw
        return True

    def _fetch_now(
        self, queue: ObjectAttachment, presence: Presence, block: bool, end: float | None
    ) -> bool:
        reader, number = self._turn, min(self._size, MOST_ITEMS)
        fetch = presence.operations.prefetch(
            reader.name, reader.call + 1, number, block, seconds_left(end), queue.eof
        )
        try:
            reader.asks = True
            with presence:
                items = queue.run_at_once(noting(fetch, self._note), queue.while_open)
            reader.answer(items or [])
            return items is not None
        except (Empty, ShutDown, QueueDoesNotExistError):
            reader.answer([])
            raise
        except BaseException:
            self._returns = self._returns or reader.asks
            raise

    def _ask_ahead(self, queue: ObjectAttachment, presence: Presence) -> None:
        """Let the next reader request as many items as this reader hands out meanwhile, if the
        queue may have so many. All items of the next reader's last call were handed out."""
        reader, items = self._next, self._turn.items
        number = min(self._size - len(items), MOST_ITEMS)
        is_full = len(items) == MOST_ITEMS or sum(map(len, items)) > MOST_BYTES / 2
        if not is_full or number < len(items) or reader.asks:
            return
        name, call = reader.name, reader.call + 1
        fetch = partial(presence.operations.prefetch, name, call, number, False, None, queue.eof)
        session: Any = queue.session()
        asked = session, fetch
        reader.asks, reader.asked = True, asked
        if not session.send_ahead(next(fetch())):
            reader.asks, reader.asked = False, None
            session.end()

    def _hear(self) -> None:
        """Read the reply to what was asked for, if anything was. After an error the next call asks
        again."""
        if self._next.asked is None:
            return
        session, fetch = self._next.asked
        try:
            items = drive(fetch(), session) or []
        except (Empty, ShutDown, QueueDoesNotExistError):
            items = []
        self._next.answer(items)

    # Telling what was handed out

    def _tell(self, reader: _Reader, presence: Presence, run: Run[bool]) -> None:
        """Tell the broker what was handed out of a reader's items. Drop the items that other
        consumers were given meanwhile."""
        if reader.asks or reader.told == reader.number:
            return
        here = self._number_ready if reader is self._turn else 0
        out = reader.number - len(reader.items) - here
        if run(presence.operations.handed(reader.name, reader.call, out)):
            reader.told = out
            return
        if here:
            self._drain()
            self._back = []
        reader.items, reader.number, reader.told = [], 0, 0

    def _report(self, presence: Presence) -> None:
        for reader in (self._turn, self._next):
            self._tell(reader, presence, presence.lease.run_now)

    def _return(self, presence: Presence, run: Run[bool]) -> None:
        put_back, turn, other = presence.operations.put_back, self._turn, self._next
        if self._out is None:
            self._drain()
            self._out = turn.number - len(turn.items) - len(self._back)
        run(put_back(turn.name, turn.call, self._out))
        if other.told < other.number and not other.asks:
            run(put_back(other.name, other.call, other.number - len(other.items)))
        asking = [reader for reader in (turn, other) if reader.asks]
        for reader in asking:
            if reader.asked is not None:
                reader.asked[0].interrupted()
            run(put_back(reader.name, reader.call + 1, 0, unheard=True))
        self._forget()
        if asking:
            # The broker knows these as long as those calls may come.
            self._name, self._turn, self._next = "", _Reader(), _Reader()

    def _forget(self) -> None:
        self._turn.answer([])
        self._next.answer([])
        self._returns, self._out, self._back = False, None, []
