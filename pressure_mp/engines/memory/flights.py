"""The FIFO queue's items in flight, and who is there."""

from __future__ import annotations

from typing import Any

from ...effects import DONE, EXCESS, LATE, MISSING, PASSED, RENEWED, Reply
from .clock import milliseconds
from .fifo import MemoryFifo
from .orders import Entry, Fifo
from .state import FifoState, Flight, Reader, owner_of


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
        number: int,
        size: int,
        reader: str,
        eof: int,
        client: str,
        ticket: str,
        *turn: Any,
    ) -> Reply:
        state, lease = self._state, turn[-1]
        if reader and state is not None:
            number = min(number, self._fair_share(state, reader, ticket))
        found = self._consume(bool(eof), owner, client, ticket, *turn)
        # What it fetched, and is not known to have handed out, may still come back.
        fetches = state is not None and bool(reader) and not state.has_left(reader)
        if state is not None and fetches:
            state.readers.pop(reader, None)
        if state is None or not isinstance(found, Entry):
            assert isinstance(found, list)
            return found
        taken = self._depart(state, self._take_more(found, number, size, client), owner, lease)
        for entry in taken:
            flown = entry._replace(deliveries=entry.deliveries + 1)
            _, token = state.parts.weigh(entry.item)
            state.flights[entry.seq] = Flight(flown, owner, call, limit, token)
            state.parts.forget(token)
        if fetches:
            state.readers[reader] = Reader(call, [], 0, milliseconds() + lease)
        return [DONE, [b"%d" % entry.seq for entry in taken], [entry.item for entry in taken]]

    def _depart(self, state: FifoState, taken: list[Entry], owner: str, lease: int) -> list[Entry]:
        """What was taken out is in flight from now on: it has numbers."""
        state.presence[owner] = max(state.presence.get(owner, 0), milliseconds() + lease)
        return [entry._replace(seq=entry.seq or next(state.seqs)) for entry in taken]

    def _fair_share(self, state: FifoState, reader: str, ticket: str) -> int:
        """How many of the items one consumer may fetch, of those that wait or consume."""
        now, role = milliseconds(), self._consumer
        active = sum(name != reader and other.until >= now for name, other in state.readers.items())
        waits = role.holder not in (None, ticket)
        line = set(self._line.tickets(role.name)) - {ticket.encode()}
        return max(len(state.items) // (1 + active + waits + len(line)), 1)

    def _prefetch(
        self,
        reader: str,
        call: int,
        number: int,
        size: int,
        eof: int,
        client: str,
        ticket: str,
        *turn: Any,
    ) -> Reply:
        state, owner, lease = self._state, owner_of(reader), turn[-1]
        if state is not None:
            last = state.readers.get(reader)
            if last is not None and last.call == call:
                return [DONE, [entry.item for entry in last.entries]]
            number = min(number, self._fair_share(state, reader, ticket))
            state.readers.pop(reader, None)
        found = self._consume(bool(eof), owner, client, ticket, *turn, ahead=True)
        if state is None or not isinstance(found, Entry):
            assert isinstance(found, list)
            return found
        taken = self._depart(state, self._take_more(found, number, size, client), owner, lease)
        state.readers[reader] = Reader(call, taken, 0, milliseconds() + lease)
        return [DONE, [entry.item for entry in taken]]

    def _handed(self, reader: str, call: int, number: int, lease: int) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        found = state.readers.get(reader)
        if found is None or found.call != call:
            return [LATE]
        found.handed, found.until = max(number, found.handed), milliseconds() + lease
        return [DONE]

    def _put_back(self, reader: str, call: int, number: int) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        found = state.readers.get(reader)
        if found is None or found.call != call:
            return [LATE]
        del state.readers[reader]
        found.handed = number
        if state.dropping:
            state.done += len(found.left)
            return [DONE, 0]
        return [DONE, self._return(state, found.left)]

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

    def _requeue(
        self, owner: str, seen: int | str, call: int | str, number: int, *seqs: int
    ) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        if seen != "" and state.presence.get(owner) != seen:
            return [RENEWED]
        back = []
        for seq, flight in sorted(state.flights.items()):
            wanted = call in ("", flight.call) and (not number or seq in seqs)
            if flight.owner != owner or not wanted:
                continue
            del state.flights[seq]
            if number:  # nobody was given it
                deliveries = flight.entry.deliveries - 1
                flight.entry, flight.limit = flight.entry._replace(deliveries=deliveries), 0
            if not flight.passed and self._comes_back(state, flight):
                back.append(flight.entry)
        if call == "" and not number:
            for name in [name for name in state.readers if owner_of(name) == owner]:
                left = state.readers.pop(name).left
                if state.dropping:
                    state.done += len(left)
                else:
                    back += left
            state.presence.pop(owner, None)
        return [DONE, self._return(state, back)]

    @staticmethod
    def _return(state: FifoState, back: list[Entry]) -> int:
        """Put items back to the front, in order; answers how many."""
        state.consumed[0] -= len(back)
        state.consumed[1] -= sum(state.parts.weigh(entry.item)[0] for entry in back)
        back.sort(key=lambda entry: entry.seq)
        items, number = state.items, len(back)
        assert isinstance(items, Fifo)  # items of other disciplines are never in flight
        while back and items and 0 < items[0].seq < back[-1].seq:
            back.append(items.popleft())
            back.sort(key=lambda entry: entry.seq)
        items.extendleft(reversed(back))
        return number

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
        now = milliseconds()
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
