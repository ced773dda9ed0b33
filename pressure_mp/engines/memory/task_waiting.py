"""Who waits for tasks: in line for any, and each alone for one of a tube, or for one task's end."""

from __future__ import annotations

import collections

from .life import Life
from .waiting import Waiter, signal

#: The signal of who stands in line; all others are a waiter's own.
_TASK = "task"
_BELL = "bell:"


class TaskWaiting:
    """As at a broker, a sign that is up before somebody waits for it is not lost."""

    def __init__(self) -> None:
        self._sign = False
        self._line: collections.deque[Waiter] = collections.deque()
        self._bells: dict[str, Waiter] = {}
        self._rung: set[str] = set()
        self._tubes: dict[str, str] = {}  # ticket: tube, first come, first served

    def stand(self, ticket: str, tube: str) -> None:
        """One waits for a task of a tube."""
        self._tubes.setdefault(ticket, tube)

    def leave(self, ticket: str) -> None:
        """One does so no longer."""
        self._tubes.pop(ticket, None)
        self._rung.discard(f"{_BELL}{ticket}")

    def notify(self, life: Life) -> None:
        """Wake those who should look."""
        for ticket in life.bells:
            self._ring(ticket)
        for tube in life.noticed:
            self.pass_on(tube)
        life.bells.clear()
        life.noticed.clear()

    def pass_on(self, tube: str) -> None:
        """Somebody should look: one in line, and one who waits for that tube."""
        self._sign = True
        self._serve()
        if tube:
            first = next((one for one, where in self._tubes.items() if where == tube), None)
            if first is not None:
                del self._tubes[first]
                self._ring(first)

    def call_all(self) -> None:
        """Everybody should look, one after the other."""
        for ticket in list(self._tubes):
            self._ring(ticket)
        self._tubes.clear()
        self.pass_on("")

    def park(self, name: str, waiter: Waiter) -> None:
        """One begins to wait."""
        if name == _TASK:
            self._line.append(waiter)
            self._serve()
        elif name in self._rung:
            self._rung.remove(name)
            signal(waiter)
        else:
            self._bells[name] = waiter

    def unpark(self, name: str, waiter: Waiter) -> None:
        """One breaks its wait off."""
        if name != _TASK:
            self._bells.pop(name, None)
        elif waiter in self._line:
            self._line.remove(waiter)
        else:
            self.pass_on("")

    def _serve(self) -> None:
        if self._sign and self._line:
            self._sign = False
            signal(self._line.popleft())

    def _ring(self, ticket: str) -> None:
        waiter = self._bells.pop(f"{_BELL}{ticket}", None)
        if waiter is None:
            self._rung.add(f"{_BELL}{ticket}")
        else:
            signal(waiter)
