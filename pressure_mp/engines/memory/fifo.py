"""The queue: every operation, as plainly as it can be written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...effects import (
    BUSY,
    CLOSED,
    DECLINED,
    DONE,
    EMPTY,
    ENDED,
    EXCESS,
    EXISTS,
    FULL,
    LARGE,
    LATE,
    LOST,
    MISMATCH,
    MISSING,
    NOW,
    UNFINISHED,
    UNORDERED,
    WAIT,
    Reply,
)
from ...large import is_manifest, token_of
from .orders import STORAGES, Entry
from .state import FifoState
from .waiting import Line, Place, Role, Waiter, milliseconds
from .waiting import signal as wake


class MemoryFifo:
    """The queue of one name: every operation, and what clients wait for."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._state: FifoState | None = None
        self._producer = Role("producer")
        self._consumer = Role("consumer")
        self._line = Line()
        self._watchers: dict[str, list[Waiter]] = {"item": [], "space": [], "finished": []}

    def call(self, op: str, args: tuple[Any, ...]) -> Reply:
        """Do one operation, atomically."""
        with self._lock:
            reply = self._do(op, args)
            self._raise_signs()
        return reply

    def _do(self, op: str, args: tuple[Any, ...]) -> Reply:
        shared: Callable[..., Reply] | None = getattr(self, f"_{op}", None)
        if shared is not None:
            return shared(*args)
        if self._state is None:
            return [MISSING]
        # An operation of one discipline only: how the items are kept knows it.
        return [DONE, *getattr(self._state.items, op)(*args)]

    def park(self, signal: str, waiter: Waiter) -> None:
        """Add a waiter; it is notified at once when its sign is up."""
        with self._lock:
            role = self._role(signal)
            if role is None:
                self._watchers[signal].append(waiter)
                self._raise_signs()
            else:
                role.line.append(waiter)
                role.grant()

    def unpark(self, signal: str, waiter: Waiter) -> None:
        """Take a waiter away; a role that was granted to it goes to the next."""
        with self._lock:
            role = self._role(signal)
            if role is None:
                if waiter in self._watchers[signal]:
                    self._watchers[signal].remove(waiter)
            elif waiter.signalled:
                role.give_back(role.standing(signal, ""))
            else:
                role.line.remove(waiter)

    def _role(self, signal: str) -> Role | None:
        return {"producer": self._producer, "consumer": self._consumer}.get(signal)

    def _raise_signs(self) -> None:
        state = self._state
        up = {
            "item": state is None or state.closed or bool(state.items),
            "space": state is None or state.closed or state.has_room,
            "finished": state is None or state.unfinished <= 0,
        }
        for signal, waiters in self._watchers.items():
            if up[signal]:
                for waiter in waiters:
                    wake(waiter)
                waiters.clear()

    def _open(self, how: str, maxsize: int, discipline: str, format: str, user: str) -> Reply:
        state, created = self._state, 0
        if state is not None:
            if how == "create":
                return [EXISTS, state.bound]
            if state.discipline != discipline:
                return [MISMATCH, b"discipline", state.discipline.encode()]
            if state.format != format:
                return [MISMATCH, b"format", state.format.encode()]
        elif how == "attach":
            return [MISSING]
        else:
            state, created = FifoState(maxsize, discipline, format, STORAGES[discipline]()), 1
            self._state = state
        if user:
            state.users.add(user)
        return [DONE, state.bound, created]

    def _exists(self) -> Reply:
        return [DONE, int(self._state is not None)]

    def _kind(self) -> Reply:
        return [DONE, self._state.discipline.encode()] if self._state else [MISSING]

    def _length(self) -> Reply:
        return [DONE, len(self._state.items)] if self._state else [MISSING]

    def _closed(self) -> Reply:
        return [DONE, int(self._state.closed)] if self._state else [MISSING]

    def _put(
        self,
        item: bytes,
        overfill: int,
        order: bytes,
        parted: int,
        client: str,
        ticket: str,
        mode: bytes,
        turn: str,
        lease: int,
    ) -> Reply:
        state, role = self._state, self._producer
        place = self._line.leave(turn, ticket)
        standing = role.standing(turn, ticket)
        if state is None or state.closed:
            role.give_back(standing)
            return [MISSING] if state is None else [CLOSED]
        if parted:
            token = token_of(item)
            if not state.parts.is_kept(token):
                role.give_back(standing)
                return [LOST]
            state.parts.keep(token, lease)
        full = not overfill and not state.has_room
        if standing == "ours" and (mode == WAIT or full):
            return self._busy(role, place, client, ticket, mode, lease)
        if full:
            self._pause(role, standing, mode, ticket, client, lease)
            return [FULL, b"space", len(state.items)]
        other = state.items.find_unordered(order)
        if other is not None:
            role.give_back(standing)
            return [UNORDERED, other]
        state.append(item, order, client)
        role.give_back(standing)
        return [DONE]

    def _put_many(self, number: int, *args: Any) -> Reply:
        items, turn = args[:number], args[number:]
        reply = self._put(items[0], 0, b"", 0, *turn)
        if reply[0] != DONE or self._state is None:
            return reply
        taken = 1
        while taken < number and self._state.has_room:
            self._state.append(items[taken], b"", turn[0])
            taken += 1
        return [DONE, taken]

    def _offer(self, item: bytes, client: str) -> Reply:
        state = self._state
        if state is None or state.closed or not (state.has_room and self._producer.is_free):
            return [DECLINED]
        state.append(item, b"", client)
        return [DONE]

    def _poll(self, client: str) -> Reply:
        state = self._state
        if state is None or not (state.items and self._consumer.is_free):
            return [DECLINED]
        if is_manifest(state.items.next().item):
            return [DECLINED]
        return [DONE, state.pop(client).item]

    def _stand_by(self, client: str, ticket: str, lease: int) -> Reply:
        state, role = self._state, self._consumer
        standing = role.standing("", ticket)
        if state is None or standing not in ("free", "mine"):
            return [DECLINED]
        if not state.items and not state.closed:
            self._wait_with(role, ticket, client, lease)
            return [EMPTY, b"item"]
        if not state.items or is_manifest(state.items.next().item):
            return [DECLINED]
        item = state.pop(client).item
        role.give_back(standing)
        return [DONE, item]

    def _keep_content(self, item: bytes, lease: int) -> bytes:
        """An item is got: whoever reads its content has time for it."""
        assert self._state is not None
        _, token = self._state.parts.weigh(item)
        if token:
            self._state.parts.keep_for_reading(token, lease)
        return item

    def _get(self, eof: int, client: str, ticket: str, mode: bytes, turn: str, lease: int) -> Reply:
        found = self._consume(bool(eof), None, client, ticket, mode, turn, lease)
        if not isinstance(found, Entry):
            return found
        return [DONE, self._keep_content(found.item, lease)]

    def _get_many(self, limit: int, size: int, eof: int, client: str, *turn: Any) -> Reply:
        found = self._consume(bool(eof), None, client, *turn)
        if not isinstance(found, Entry):
            return found
        self._keep_content(found.item, turn[-1])
        return [DONE, [entry.item for entry in self._take_more(found, limit, size, client)]]

    def _take_more(self, first: Entry, limit: int, size: int, client: str) -> list[Entry]:
        """The item whose turn it was, which was taken out, and those that may come with it. One
        whose content is in parts is taken alone."""
        state = self._state
        assert state is not None
        taken, room = [first], size - len(first.item)
        if state.parts.weigh(first.item)[1]:
            return taken
        while len(taken) < limit and state.items and len(state.items.next().item) <= room:
            if self._is_next_large(state):
                break
            room -= len(state.items.next().item)
            taken.append(state.pop(client))
        return taken

    @staticmethod
    def _is_next_large(state: FifoState) -> bool:
        """Whether the content of the item whose turn it is is in parts."""
        return bool(state.parts.weigh(state.items.next().item)[1])

    def _consume(
        self,
        eof: bool,
        owner: str | None,
        client: str,
        ticket: str,
        mode: bytes,
        turn: str,
        lease: int,
        *,
        ahead: bool = False,
    ) -> Entry | Reply:
        """The oldest item, which is no longer queued; or the refusal. Ahead of its need none is
        taken whose content is in parts."""
        state, role = self._state, self._consumer
        place = self._line.leave(turn, ticket)
        standing = role.standing(turn, ticket)
        if state is None or (not state.items and (state.closed or (eof and state.ended(owner)))):
            role.give_back(standing)
            return [MISSING] if state is None else [CLOSED] if state.closed else [ENDED]
        if standing == "ours" and (mode == WAIT or not state.items):
            return self._busy(role, place, client, ticket, mode, lease)
        if not state.items:
            self._pause(role, standing, mode, ticket, client, lease)
            return [EMPTY, b"item"]
        if ahead and self._is_next_large(state):
            role.give_back(standing)
            return [LARGE]
        entry = state.pop(client)
        role.give_back(standing)
        return entry

    def _pause(
        self, role: Role, standing: str, mode: bytes, ticket: str, client: str, lease: int
    ) -> None:
        if mode == NOW:
            role.give_back(standing)
        else:
            self._wait_with(role, ticket, client, lease)

    def _wait_with(self, role: Role, ticket: str, client: str, lease: int) -> None:
        """Who waits with a role is the queue's producer, or consumer."""
        role.hold(ticket, client, lease)
        assert self._state is not None
        if role is self._producer:
            self._state.producer_id = client.encode()
        else:
            self._state.consumer_id = client.encode()

    def _busy(
        self, role: Role, place: Place | None, client: str, ticket: str, mode: bytes, lease: int
    ) -> Reply:
        """The caller is not served."""
        if mode == WAIT:
            self._line.stand(role.name, place, client, ticket, lease)
        return [BUSY, role.name.encode(), b"ours"]

    def _keepers(self, lease: int) -> Reply:
        """Who holds a role; of one that is promised, all who may have been granted it."""
        if self._state is None:
            return [MISSING]
        tickets: list[bytes] = []
        for role in (self._producer, self._consumer):
            if role.holder is not None:
                tickets.append(role.holder.encode())
            elif role.promised:
                tickets += self._line.tickets(role.name)
        return [DONE, lease, tickets]

    def _close(
        self,
        once: int,
        immediate: int,
        client: str,
        ticket: str,
        mode: bytes,
        turn: str,
        lease: int,
    ) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        if state.closed and once:
            return [CLOSED]
        if not state.closed:
            state.closed = True
            state.producer_id = client.encode()
        if immediate:
            state.dropping = True
            state.done += len(state.items)
            state.items.clear()
            state.parts.end_queued()
        return [DONE, b"", b""]

    def _delete(self, client: str, ticket: str, mode: bytes, turn: str, lease: int) -> Reply:
        if self._state is None:
            return [MISSING]
        self._state = None
        self._line = Line()
        for role in (self._producer, self._consumer):
            role.holder, role.promised = None, False
            role.grant()
        return [DONE, b"", b""]

    def _release(self, ticket: str, turn: str, lease: int) -> Reply:
        self._line.forget(ticket)
        for role in (self._producer, self._consumer):
            role.give_back(role.standing(turn, ticket))
        return [DONE]

    def _evict(self, ticket: str, lease: int) -> Reply:
        place = self._line.forget(ticket)
        for role in (self._producer, self._consumer):
            granted = role.promised and place is not None and place.role == role.name
            role.give_back("granted" if granted else role.standing("", ticket))
        return [DONE]

    def _inspect(self, limit: int) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]

        def look(role: Role, last: bytes | None) -> list[Any]:
            if role.holder is None:
                return [last or b"", b"promised" if role.promised else b"free", *[b""] * 5]
            holder = role.holder.encode(), role.client.encode()
            return [last or b"", b"held", *holder, role.since, role.until, role.lease]

        return [
            DONE,
            milliseconds(),
            state.bound,
            len(state.items),
            int(state.closed),
            int(state.has_room),
            look(self._producer, state.producer_id),
            look(self._consumer, state.consumer_id),
            self._line.entries(limit),
        ]

    def _unlock(self, name: str) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        role, last = (
            (self._producer, state.producer_id)
            if name == "producer"
            else (self._consumer, state.consumer_id)
        )
        if role.standing("", "") == "free":
            return [DONE, b""]
        who = role.client.encode() or last or b"unknown"
        role.give_back("mine")
        return [DONE, who]

    def _stats(self) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        return [
            DONE,
            state.bound,
            len(state.items),
            int(state.closed),
            *state.produced,
            *state.consumed,
            state.unfinished,
            len(state.rejected),
            sum(not flight.passed for flight in state.flights.values())
            + sum(len(reader.left) for reader in state.readers.values()),
            state.producer_id,
            state.consumer_id,
        ]

    def _set_bound(self, maxsize: int) -> Reply:
        if self._state is None:
            return [MISSING]
        self._state.bound = maxsize
        return [DONE]

    def _task_done(self) -> Reply:
        state = self._state
        if state is None:
            return [MISSING]
        if state.unfinished <= 0:
            return [EXCESS]
        state.done += 1
        return [DONE, state.unfinished]

    def _join(self) -> Reply:
        if self._state is None:
            return [MISSING]
        return [UNFINISHED, b"finished"] if self._state.unfinished > 0 else [DONE]

    def _reject(self, item: bytes, owner: str, seq: int | str) -> Reply:
        if self._state is None:
            return [MISSING]
        if seq != "":
            flight = self._state.flights.get(int(seq))
            if flight is None or flight.owner != owner or flight.passed:
                return [LATE]
            del self._state.flights[int(seq)]
        self._state.parts.forget(self._state.parts.weigh(item)[1])
        self._state.rejected.append(item)
        self._state.done += 1
        return [DONE]

    def _rejected(self, limit: int) -> Reply:
        return [DONE, self._state.rejected[:limit]] if self._state else [MISSING]

    def _store(self, token: str, number: int, lease: int, part: Sequence[memoryview]) -> Reply:
        state = self._state
        if state is None or state.closed:
            return [CLOSED] if state else [MISSING]
        if number == 0:
            state.parts.sweep("", not state.items)
        elif not state.parts.is_kept(token):
            return [LOST]
        state.parts.store(token, number, lease, part)
        return [DONE]

    def _fetch(self, token: str, number: int, room: Sequence[memoryview]) -> Reply:
        state = self._state
        there = state is not None and state.parts.fetch(token, number, room)
        return [DONE] if there else [LOST]

    def _hold(self, token: str, lease: int) -> Reply:
        if self._state is not None:
            self._state.parts.hold(token, lease)
        return [DONE]

    def _sweep(self, token: str) -> Reply:
        if self._state is not None:
            self._state.parts.sweep(token, not self._state.items)
        return [DONE, 0]

    def _enlist(self, user: str) -> Reply:
        if self._state is None:
            return [MISSING]
        self._state.users.add(user)
        return [DONE]

    def _users(self) -> Reply:
        return [DONE, [u.encode() for u in self._state.users]] if self._state else [MISSING]

    def _dismiss(self, *users: str) -> Reply:
        if self._state is None or not self._state.users:
            return [MISSING]  # without users, it is not these processes' to remove
        self._state.users.difference_update(users)
        left = len(self._state.users)
        if not left:
            self._delete("", "", NOW, "", 0)
        return [DONE, left]
