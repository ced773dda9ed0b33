"""The tasks of event loops that wait for the signs of shared memory."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from functools import partial
from time import monotonic
from weakref import WeakKeyDictionary

from ... import lifecycle
from .. import wake_sockets
from ..closed_loops import OwnLoop
from ..lines import Lines
from .items import MOMENT
from .locks import BUSY
from .waking import Sign, Waking, name_of

#: After so many calls of one loop that were done at once, a call lets other tasks run.
_CALLS_IN_A_ROW = 100


class LoopWaits:
    """The tasks of one event loop that wait, and the socket by which other processes wake it."""

    def __init__(self) -> None:
        self.lines = Lines()
        self._own = OwnLoop()
        self._socket: socket.socket | None = None
        self._number = 0
        self._waiting: dict[asyncio.Future[bool], Callable[[], bool]] = {}
        self._calls = 0

    def is_to_yield(self) -> bool:
        """Count a call; return whether it is to let other tasks run before it is done."""
        self._calls = (self._calls + 1) % _CALLS_IN_A_ROW
        return not self._calls

    async def wait(
        self, ring: Waking, sign: Sign, is_over: Callable[[], bool], seconds: float
    ) -> bool | None:
        """Wait until another process, thread or task tells ``sign``, unless the wait ``is_over``
        before. Returns whether it may be over; None when there is no room for this loop, or no
        socket."""
        try:
            loop, number = asyncio.get_running_loop(), self._listen()
        except OSError:  # as when this process may open no more files
            return None
        place = ring.taking.run(partial(ring.take_place, sign, number), monotonic() + MOMENT)
        if place is BUSY:
            await asyncio.sleep(MOMENT)
            return True
        if place < 0:
            return None
        told: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, _set, told, False)
        self._waiting[told] = is_over
        try:
            return is_over() or await told or is_over()
        except BaseException:
            ring.leave_place(place, number)
            if is_over():  # what another process may have told this task is told the next one
                ring.tell(sign, 1)
            raise
        finally:
            timer.cancel()
            self._waiting.pop(told, None)
            ring.leave_place(place, number)

    def _listen(self) -> int:
        if self._socket is None:
            self._number = int.from_bytes(os.urandom(8), "little") | 1
            self._socket = wake_sockets.listen(name_of(self._number))
            asyncio.get_running_loop().add_reader(self._socket, self._read)
            self._own.note(self)
        return self._number

    def _read(self) -> None:
        assert self._socket is not None
        wake_sockets.read(self._socket)
        for told, is_over in list(self._waiting.items()):
            if is_over():
                _set(told, True)

    def leave_behind(self) -> None:
        """Close the socket of a loop that is closed."""
        self._own.forget(self)
        self._waiting.clear()  # they refer to the loop
        if self._socket is not None:
            self._socket.close()
            wake_sockets.remove(name_of(self._number))

    def after_fork(self) -> None:
        """Close the parent's socket in a forked child: else it would outlive the parent."""
        self._own.after_fork()
        if self._socket is not None:
            self._socket.close()


def _set(told: asyncio.Future[bool], is_told: bool) -> None:
    if not told.done():
        told.set_result(is_told)


_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopWaits] = WeakKeyDictionary()


def of_loop() -> LoopWaits:
    """The waits of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _loops.get(loop)
    if found is None:
        found = _loops[loop] = LoopWaits()
    return found


def _after_fork_in_child() -> None:
    for waits in list(_loops.values()):
        waits.after_fork()
    _loops.clear()


lifecycle.register("forget waits of event loops", _after_fork_in_child)
