"""The queue of items of one name: its requests are done one after the other."""

from __future__ import annotations

import threading
from typing import Any

from ..contract.brokers import QueueSummary
from ..contract.default_replies import default_reply, reply_alone
from ..contract.items import Put, Take
from ..contract.queues import Join
from ..contract.replies import NoItem, NoSpace, Outcome, Unfinished
from ..contract.requests import Request
from .administration import summarize
from .dispatch import for_items, for_slots
from .items import end_of_items
from .line import Caller, Line, Wish
from .state import Slot

_WISHES = (Put, Take, Join)
_NOT_SERVED = (NoSpace, NoItem, Unfinished)


class MemoryItems:
    """The queue of items of one name, and the callers that wait at it."""

    def __init__(self, existing: set[Any]) -> None:
        self._lock = threading.Lock()
        self._existing = existing  # holds this object while a queue of its name exists
        #: The queue, if there is one, and its lines.
        self.slot = Slot()

    def call(self, request: Request, caller: Caller) -> Any:
        """Do a request, atomically, and wake the callers that can be served because of it.

        A caller that waits and was not served gets a place in line, or keeps it. A caller that was
        served, or whose request does not wait, gives up its place.
        """
        kind = type(request)
        if (found := reply_alone(request)) is not None:
            return found
        with self._lock:
            state = self.slot.state
            if (do := for_items.get(kind)) is not None:
                reply = Outcome.MISSING if state is None else do(state, request, caller)
            elif (do_anyway := for_slots.get(kind)) is not None:
                reply = do_anyway(self.slot, request, caller)
            else:
                return default_reply(request)
            (self._existing.discard if self.slot.state is None else self._existing.add)(self)
            if isinstance(request, _WISHES):
                self._keep_place(request, reply, caller)
            self._wake_ready()
        return reply

    def summary(self, name: str) -> QueueSummary | None:
        """Make the summary with which the queue is listed; None when it does not exist."""
        with self._lock:
            state = self.slot.state
            return None if state is None else summarize(state, name)

    def leave(self, caller: Caller) -> None:
        """Give up the caller's place, and wake the next caller for what this one was woken for."""
        with self._lock:
            for line in self.slot.lines.all:
                line.leave(caller)
            self._wake_ready()

    def _keep_place(self, wish: Wish, reply: Any, caller: Caller) -> None:
        line, state = self._line(wish), self.slot.state
        waits = True if isinstance(wish, Join) else wish.waits
        if state is None or not waits or not isinstance(reply, _NOT_SERVED):
            line.leave(caller)
            return
        line.keep_place(caller, wish)
        # A caller that waits for space is the queue's producer, one that waits for an item its
        # consumer.
        if line is state.lines.putters and line.is_next(caller):
            state.producer = caller.client
        elif line is state.lines.takers and line.is_next(caller):
            state.consumer = caller.client

    def _line(self, wish: Wish) -> Line:
        match wish:
            case Put():
                return self.slot.lines.putters
            case Take():
                return self.slot.lines.takers
            case Join():
                return self.slot.lines.joiners

    def _wake_ready(self) -> None:
        for line in self.slot.lines.all:
            for caller, place in line.waiting() if line else ():
                if self._can_go_on(place.wish, line.is_next(caller)):
                    caller.wake()

    def _can_go_on(self, wish: Wish, is_next: bool) -> bool:
        """Tell whether a waiting caller would be served, or told that the wait is in vain."""
        state = self.slot.state
        if state is None:
            return True
        match wish:
            case Put():
                return state.closed or (is_next and state.has_space)
            case Take():
                return bool(end_of_items(state, wish) or (is_next and state.items))
            case Join():
                return state.unfinished <= 0
