"""Items that were fetched ahead and are dealt with when they are handed out."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ..background import at_exit
from ..background.hand_outs import HandOuts
from ..deadlines import deadline, seconds_left
from ..drivers import noting
from ..engines.contract.replies import Outcome
from ..exceptions import Empty, PressureError, QueueDoesNotExistError, ShutDown
from ..operations.deliveries import Delivery
from .incoming import Incoming, decoded

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from .handle import BufferedHandle


class IncomingForGood(Incoming):
    """Of a queue whose items are dealt with when they are handed out.

    The broker is told so by the next fetch, and until then by this process's presence; others on
    this host can see it.
    """

    #: Whether it fetches only what nobody else would get meanwhile.
    _is_alone = False

    def get(self, handle: BufferedHandle, block: bool, timeout: float | None) -> Any:
        try:
            for item in self._pops:
                self._handed_out[0] += 1
                return item
        except IndexError:
            pass
        return self._get_with_care(handle, block, deadline(block, timeout))

    def reset(self) -> None:
        super().reset()
        self._hand_outs: HandOuts | None = None
        self._handed_out = memoryview(bytearray(8)).cast("Q")
        self._fetched = 0  # by that call
        self._told = 0  # of these, how many the broker knows to be handed out
        self._out: int | None = None  # how many stay out of a call that goes back
        self._is_doubtful = False  # the next call may have been answered, and nobody heard it

    @property
    def holds(self) -> bool:
        return self._is_doubtful or self._told < self._fetched

    def _hand_out(self) -> Any:
        for item in self._pops:
            self._handed_out[0] += 1
            return item
        raise IndexError

    def _undo(self, item: Any) -> Any:
        self._handed_out[0] -= 1
        return item

    def _decode_next(self, handle: BufferedHandle) -> None:
        try:
            item = handle._run_at_once(handle._operations.accept(self._raw[0].item))
        except PressureError:
            del self._raw[0]
            self._handed_out[0] += 1
            raise
        self._ahead += (item,)
        del self._raw[0]

    def _fetch(
        self, handle: BufferedHandle, presence: Presence, block: bool, end: float | None
    ) -> bool:
        call = self._call + 1
        fetch = presence.operations.prefetch(
            self._name, call, self._size, block, seconds_left(end), handle._eof, self._is_alone
        )
        if self._hand_outs is None:
            self._hand_outs = HandOuts(self._name, handle.name)
            self._handed_out = self._hand_outs.cell
            at_exit.call_at_end(_leave, priority=5)  # when what is left was given back
            _all.add(self)
        try:
            with presence:
                items = handle._run_at_once(noting(fetch, self._note))
            if not isinstance(items, list):
                self._forget()
                self._is_alone = self._is_alone and items is not Outcome.SHARED
                return False
            objects, raw = decoded(handle, [Delivery(0, item) for item in items])
            fetched = len(items)
            self._hand_outs.begin(call)
            # All of it, or nothing: there is no call.
            self._call, self._is_doubtful = call, False
            self._fetched, self._told = fetched, 0
            self._ahead += objects
            self._raw += raw
            return True
        except (Empty, ShutDown, QueueDoesNotExistError):
            self._forget()
            raise
        except BaseException:
            if self._call != call:
                self._is_doubtful = True  # to be asked for again, by the same number
            raise

    def _forget(self) -> None:
        self._call += 1
        self._fetched = self._told = 0
        self._is_doubtful = self._returns = False
        self._out, self._back = None, []

    def _report(self, presence: Presence) -> None:
        out = self._fetched - len(self)
        if presence.lease.run_now(presence.operations.handed(self._name, self._call, out)):
            self._told = out
        elif not self._is_doubtful:
            self._drain()
            self._back = []
            self._fetched = self._told = 0

    def _return(self, presence: Presence, run: Run[bool]) -> None:
        if self._out is None:
            self._drain()
            self._out = self._fetched - len(self._back)
        run(presence.operations.put_back(self._name, self._call, self._out))
        if self._is_doubtful:
            run(presence.operations.put_back(self._name, self._call + 1, 0))
        self._forget()

    def end_hand_outs(self) -> None:
        """Unless something could not be given back: that others take over."""
        if self._hand_outs is not None and not self.holds:
            self._hand_outs.end()


_all: weakref.WeakSet[IncomingForGood] = weakref.WeakSet()


def _leave() -> None:
    for incoming in list(_all):
        incoming.end_hand_outs()
