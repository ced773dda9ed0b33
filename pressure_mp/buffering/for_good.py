"""What was fetched ahead from a queue whose items are dealt with when they are handed out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..deadlines import deadline, seconds_left
from ..drivers import noting
from ..exceptions import Empty, PressureError, QueueDoesNotExistError, ShutDown
from ..operations.deliveries import Delivery
from .incoming import Incoming, decoded

if TYPE_CHECKING:
    from ..background.presence import Presence, Run
    from .handle import BufferedHandle


class IncomingForGood(Incoming):
    """Of a queue whose items are dealt with when they are handed out.

    The broker is told so by the next fetch, and until then by this process's presence.
    """

    def get(self, handle: BufferedHandle, block: bool, timeout: float | None) -> Any:
        try:
            for item in self._pops:
                return item
        except IndexError:
            pass
        return self._get_with_care(handle, block, deadline(block, timeout))

    def pass_on(
        self,
        handle: BufferedHandle,
        write: Callable[[list[Any]], int],
        block: bool,
        timeout: float | None,
    ) -> bool:
        """Give all that is here to ``write``, which returns how many of the first ones it has dealt
        with: these are handed out, the others are here still. Fetches when there is none. For one
        thread. False when the next one is not to be fetched ahead. Raises as ``get`` does.
        """
        if not self._ahead:
            handle._check_open()
            if self._make_ready(handle, block, deadline(block, timeout)) is not None:
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

    @property
    def holds(self) -> bool:
        return self._is_doubtful or self._told < self._fetched

    def _hand_out(self) -> Any:
        for item in self._pops:
            return item
        raise IndexError

    def _decode_next(self, handle: BufferedHandle) -> None:
        try:
            item = handle._run_at_once(handle._operations.accept(self._raw[0].item))
        except PressureError:
            del self._raw[0]
            raise
        self._ahead += (item,)
        del self._raw[0]

    def _fetch(
        self, handle: BufferedHandle, presence: Presence, block: bool, end: float | None
    ) -> bool:
        call, number = self._call + 1, self._size
        fetch = presence.operations.prefetch(
            self._name, call, number, block, seconds_left(end), handle._eof
        )
        try:
            with presence:
                items = handle._run_at_once(noting(fetch, self._note))
            if items is None:
                self._forget()
                return False
            objects = decoded(handle, items)
            raw = [] if objects is not None else [Delivery(0, item) for item in items]
            fetched = len(items)
            # All of it, or nothing: there is no call.
            self._call, self._is_doubtful = call, False
            self._fetched, self._told = fetched, 0
            self._ahead += objects or ()
            self._raw += raw
            return True
        except (Empty, ShutDown, QueueDoesNotExistError):
            self._forget()
            raise
        except BaseException:
            if self._call != call:
                self._is_doubtful = self._returns = True
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
        else:
            self._drain()
            self._back = []
            self._fetched = self._told = 0

    def _return(self, presence: Presence, run: Run[bool]) -> None:
        if self._out is None:
            self._drain()
            self._out = self._fetched - len(self._back)
        run(presence.operations.put_back(self._name, self._call, self._out))
        is_doubtful = self._is_doubtful
        if is_doubtful:
            run(presence.operations.put_back(self._name, self._call + 1, 0, unheard=True))
        self._forget()
        if is_doubtful:
            self._name = ""  # which the broker knows as long as that call may come
