"""The FIFO queue's items in flight, and who is there."""

from __future__ import annotations

import time

from ...effects import DONE, EXCESS, LATE, MISSING, PASSED, RENEWED, Reply
from .fifo import MemoryFifo
from .orders import Entry, Fifo
from .state import FifoState, Flight


class MemoryFlights(MemoryFifo):
    """Taking an item instead of getting it: it comes back unless it is acknowledged.

    An owner is a process to the operations. In memory they all speak for the same one, so nobody
    ends without the queue.
    """

    def _take(
        self,
        owner: str,
        call: int,
        limit: int,
        eof: int,
        client: str,
        ticket: str,
        mode: bytes,
        turn: str,
        lease: int,
    ) -> Reply:
        found = self._consume(bool(eof), owner, client, ticket, mode, turn, lease)
        state = self._state
        if not isinstance(found, Entry):
            return found
        assert state is not None
        seq = found.seq or next(state.seqs)
        entry = Entry(found.item, seq, found.deliveries + 1)
        _, token = state.parts.weigh(found.item)
        state.flights[seq] = Flight(entry, owner, call, limit, token)
        state.parts.forget(token)
        state.presence[owner] = max(state.presence.get(owner, 0), _now() + lease)
        return [DONE, b"%d" % seq, found.item]

    def _acknowledge(self, owner: str, seq: int | str) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        token = ""
        if seq == "":
            oldest = min((n for n, flight in state.flights.items() if not flight.passed), default=0)
            if oldest:
                state.flights[oldest].passed = True
                token = state.flights[oldest].token
        else:
            flight = state.flights.get(int(seq))
            if flight is None or flight.owner != owner:
                return [LATE]
            del state.flights[int(seq)]
            if flight.passed:
                return [PASSED]
            token = flight.token
        state.parts.end(token)
        if state.unfinished <= 0:
            return [EXCESS]
        state.done += 1
        return [DONE, state.unfinished, 0] if token else [DONE, state.unfinished]

    def _requeue(self, owner: str, seen: int | str, call: int | str) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        if seen != "" and state.presence.get(owner) != seen:
            return [RENEWED]
        back = []
        for seq, flight in sorted(state.flights.items()):
            if flight.owner == owner and call in ("", flight.call):
                del state.flights[seq]
                if not flight.passed and self._comes_back(state, flight):
                    back.append(flight.entry)
        if call == "":
            state.presence.pop(owner, None)
        state.consumed[0] -= len(back)
        state.consumed[1] -= sum(state.parts.weigh(entry.item)[0] for entry in back)
        items, number = state.items, len(back)
        assert isinstance(items, Fifo)  # items of other disciplines are never in flight
        while back and items and 0 < items[0].seq < back[-1].seq:
            back.append(items.popleft())
            back.sort(key=lambda entry: entry.seq)
        items.extendleft(reversed(back))
        return [DONE, number]

    @staticmethod
    def _comes_back(state: FifoState, flight: Flight) -> bool:
        """Whether the item goes back to the front; else it is dropped or set aside, and done."""
        poison = 0 < flight.limit <= flight.entry.deliveries
        if poison and not state.dropping:
            state.rejected.append(flight.entry.item)
        if poison or state.dropping:
            state.done += 1
            if state.dropping:
                state.parts.end(flight.token)
            return False
        if flight.token:
            state.parts.queue(flight.token)
        return True

    def _renew(self, owner: str, lease: int, consumes: int, produces: int) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        now = _now()
        if consumes:
            state.presence[owner] = now + lease
        if produces:
            state.producers = {**(state.producers or {}), owner: now + lease}
        return [DONE, now, _flat(state.presence), _flat(state.producers)]

    def _retire(self, owner: str, seen: int | str) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        if seen != "" and (state.producers or {}).get(owner) != seen:
            return [RENEWED]
        if state.producers is not None:
            state.producers.pop(owner, None)
        return [DONE, b""]


def _flat(leases: dict[str, int] | None) -> list[bytes | int]:
    """Names, each followed by the end of its lease."""
    return [word for name, until in (leases or {}).items() for word in (name.encode(), until)]


def _now() -> int:
    """Milliseconds since the epoch."""
    return int(time.time() * 1000)
