"""Fetches ahead from a queue whose items are done when they are handed out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

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


class _Other(NamedTuple):
    """The handle's other reader: its items come next."""

    name: str = ""
    #: Its last call, and how many items of that were handed out, which the broker does not know.
    call: int = 0
    untold: int = 0
    #: The items of that call, all of them, if it is not yet their turn.
    items: list[bytes] = []  # noqa: RUF012  # nobody changes it


class _Asked(NamedTuple):
    """A call of the other reader that was sent, and whose reply is unread."""

    session: Session
    name: str
    call: int
    fetch: Fetch


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

    def pass_on(
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
        self._fetched = 0  # by that call
        self._told = 0  # of these, how many the broker knows to be handed out
        self._out: int | None = None  # how many stay out of a call that goes back
        self._is_doubtful = False  # the next call may have been answered, and nobody heard it
        self._other = _Other()
        self._asked: _Asked | None = None

    def __len__(self) -> int:
        return self._number_ready + len(self._other.items)

    @property
    def holds(self) -> bool:
        is_told = self._told == self._fetched and not (self._other.items or self._other.untold)
        return self._is_doubtful or not is_told or self._asked is not None

    def before_look(self, queue: ObjectAttachment) -> None:
        """Hear the reply to what was asked for: its items are counted beside the broker's."""
        if self._asked is None:
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

    def _fetch(
        self, queue: ObjectAttachment, presence: Presence, block: bool, end: float | None
    ) -> bool:
        self._hear()
        if self._other.items:
            if self._asked is None:  # first: to decode them takes time
                self._ask_ahead(queue, presence, (self._name, self._call), self._other.items)
            untold = self._fetched if self._asked is None else 0
            last = _Other(self._name, self._call, untold)
            self._have(queue, self._other.name, self._other.call, self._other.items, last)
            return True
        self._settle_other(queue.run_at_once, presence)  # this one may wait for long
        call, number = self._call + 1, min(self._size, MOST_ITEMS)
        fetch = presence.operations.prefetch(
            self._name, call, number, block, seconds_left(end), queue.eof
        )
        try:
            with presence:
                items = queue.run_at_once(noting(fetch, self._note), queue.while_open)
            if items is None:
                self._end_call()
                return False
            self._have(queue, self._name, call, items, self._other)
        except (Empty, ShutDown, QueueDoesNotExistError):
            self._end_call()
            raise
        except BaseException:
            if self._call != call:
                self._is_doubtful = self._returns = True
            raise
        other = self._other.name or f"{self._name}.2", self._other.call
        self._ask_ahead(queue, presence, other, items)
        return True

    def _have(
        self, queue: ObjectAttachment, name: str, call: int, items: list[bytes], other: _Other
    ) -> None:
        """Hand out the items of a reader's call from now on."""
        objects = decoded(queue, items)
        ready = [] if objects is None else objects
        raw = [Delivery(0, item) for item in items] if objects is None else []
        fetched = len(items)
        # All of it, or nothing: there is no call.
        self._other, self._name, self._call = other, name, call
        self._fetched, self._told, self._is_doubtful = fetched, 0, False
        self._ahead += ready
        self._raw += raw

    def _end_call(self) -> None:
        """Note that the broker keeps nothing of the call."""
        self._call += 1
        self._fetched = self._told = 0
        self._is_doubtful = False

    def _forget(self) -> None:
        self._end_call()
        self._returns = False
        self._out, self._back = None, []
        self._asked, self._other = None, _Other(self._other.name, self._other.call)

    def _report(self, presence: Presence) -> None:
        if self._told < self._fetched:
            out = self._fetched - self._number_ready
            if presence.lease.run_now(presence.operations.handed(self._name, self._call, out)):
                self._told = out
            else:
                self._drain()
                self._back = []
                self._fetched = self._told = 0
        self._settle_other(presence.lease.run_now, presence)

    def _return(self, presence: Presence, run: Run[bool]) -> None:
        if self._out is None:
            self._drain()
            self._out = self._fetched - len(self._back)
        run(presence.operations.put_back(self._name, self._call, self._out))
        is_doubtful, asked, other = self._is_doubtful, self._asked, self._other
        if is_doubtful:
            run(presence.operations.put_back(self._name, self._call + 1, 0, unheard=True))
        if other.items or other.untold:
            run(presence.operations.put_back(other.name, other.call, other.untold))
        if asked is not None:
            asked.session.interrupted()
            run(presence.operations.put_back(asked.name, asked.call, 0, unheard=True))
        self._forget()
        if is_doubtful or asked is not None:
            # The broker knows these as long as those calls may come.
            self._name, self._other = "", _Other()

    # The other reader

    def _ask_ahead(
        self,
        queue: ObjectAttachment,
        presence: Presence,
        reader: tuple[str, int],
        items: list[bytes],
    ) -> None:
        """Ask for the next items, if there may be as many again as these, which are handed out
        meanwhile. The ``reader``, a name and its last call, has handed out all of that call."""
        number = min(self._size - len(items), MOST_ITEMS)
        is_full = len(items) == MOST_ITEMS or sum(map(len, items)) > MOST_BYTES / 2
        if not is_full or number < len(items):
            return
        name, call = reader[0], reader[1] + 1
        fetch = partial(presence.operations.prefetch, name, call, number, False, None, queue.eof)
        session: Any = queue.session()
        self._asked = _Asked(session, name, call, fetch)
        if not session.send_ahead(next(fetch())):
            self._asked = None
            session.end()

    def _hear(self) -> None:
        """Read the reply to what was asked for, if anything was. After an error the next call asks
        again."""
        asked = self._asked
        if asked is None or self._other.items:
            return
        try:
            items = drive(asked.fetch(), asked.session) or []
        except (Empty, ShutDown, QueueDoesNotExistError):
            items = []
        self._other, self._asked = _Other(asked.name, asked.call, 0, items), None

    def _settle_other(self, run: Run[bool], presence: Presence) -> None:
        """Tell the broker what was handed out of the other reader's items. Drop the items that
        other consumers were given meanwhile."""
        name, call, untold, items = self._other
        if not (items or untold):
            return
        is_kept = run(presence.operations.handed(name, call, untold))
        self._other = _Other(name, call, 0, items if is_kept else [])
