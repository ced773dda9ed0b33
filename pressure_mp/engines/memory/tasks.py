"""A queue of tasks: every operation, as plainly as it can be written."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

from ... import states
from ...effects import (
    ABSENT,
    CHANGED,
    CLOSED,
    DECLINED,
    DONE,
    EMPTY,
    EXISTS,
    FOREIGN,
    MISMATCH,
    MISSING,
    RENEWED,
    UNFINISHED,
    WAIT,
    WRONG,
    Reply,
)
from ...records import Record
from .clock import milliseconds
from .life import Life, Living
from .task_waiting import TaskWaiting
from .waiting import Waiter


class MemoryTasks:
    """The queue of tasks of one name: every operation, and what clients wait for."""

    #: The broker's clock, in milliseconds since the epoch; tests set it.
    clock: Callable[[], int] = staticmethod(milliseconds)

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._life: Life | None = None
        self._waiting = TaskWaiting()

    def call(self, op: str, args: tuple[Any, ...]) -> Reply:
        """Do one operation, atomically."""
        with self._lock:
            if op in ("open", "exists"):
                return getattr(self, f"_{op}")(*args)  # type: ignore[no-any-return]
            life = self._life
            if life is None:
                return [DONE, []] if op == "rouse" else [MISSING]
            life.now = self.clock()
            if op not in ("kind", "enlist", "users", "dismiss", "delete", "truncate", "requeue"):
                life.sweep()
            reply: Reply = getattr(self, f"_{op}")(life, *args)
            self._waiting.notify(life)
            return reply

    def park(self, signal: str, waiter: Waiter) -> None:
        """Add a waiter; it is notified at once when it was called already."""
        with self._lock:
            self._waiting.park(signal, waiter)

    def unpark(self, signal: str, waiter: Waiter) -> None:
        """Take a waiter away; what it was called for is for another."""
        with self._lock:
            self._waiting.unpark(signal, waiter)

    def _open(
        self, how: str, options: str, discipline: str, format: str, user: str, *numbers: int
    ) -> Reply:
        life = self._life
        if life is not None:
            have = life.options.encode()
            if how == "create":
                return [EXISTS, have]
            if format != life.format:
                return [MISMATCH, b"format", life.format.encode()]
        elif how == "attach":
            return [MISSING]
        else:
            life = self._life = Life(options, format, *numbers, now=self.clock())
        if user:
            life.users.add(user)
        return [DONE, life.options.encode()]

    def _exists(self) -> Reply:
        return [DONE, int(self._life is not None)]

    def _kind(self, life: Life) -> Reply:
        return [DONE, b"tasks"]

    def _enlist(self, life: Life, user: str) -> Reply:
        life.users.add(user)
        return [DONE]

    def _users(self, life: Life) -> Reply:
        return [DONE, [user.encode() for user in life.users]]

    def _dismiss(self, life: Life, *users: str) -> Reply:
        life.users.difference_update(users)
        if not life.users:
            self._life = None
        return [DONE, len(life.users)]

    def _delete(self, life: Life) -> Reply:
        self._life = None
        return [DONE]

    def _put(
        self,
        life: Life,
        ids: str,
        delay: int,
        ttl: int | str,
        priority: bytes,
        tube: str,
        waits: str,
        number: int,
        *flat: bytes,
    ) -> Reply:
        if life.closed:
            return [CLOSED, []]
        state, ends = states.READY, life.lifetime(ttl)
        if delay:
            state, ends = states.WAITING, life.now + delay
        named: dict[bytes, bytes] = {}
        for id, data in zip(flat[::2], flat[1::2], strict=True):
            taken = life.tasks.get(id)
            if id and (taken or id in named):
                return [EXISTS, [], id, (taken.record.state if taken else state).encode()]
            named[id or life.make_id(ids, named)] = data
        for id, data in named.items():
            seq = life.next_seq()
            record = Record(state, priority, seq, life.now, life.now, ends, 0, 0, tube)
            life.add(Living(id, record, data))
        if waits:
            life.awaited[next(iter(named))] = [waits]
        return [DONE, [], *named]

    def _take(
        self,
        life: Life,
        owner: str,
        call: int,
        limit: int,
        size: int,
        ttr: int | str,
        tube: str,
        ticket: str,
        entry: bytes,
        mode: bytes,
        turn: str,
        lease: int,
    ) -> Reply:
        if turn == "again":
            self._waiting.leave(ticket)
        taken: list[Living] = []
        room = size
        while len(taken) < limit:
            task = life.next_ready(tube)
            if task is None or (taken and len(task.data) > room):
                break
            room -= len(task.data)
            life.take(task, owner, call, ttr)
            taken.append(task)
        if taken:
            life.presence[owner] = max(life.presence.get(owner, 0), life.now + lease)
            if turn == "again":
                self._waiting.pass_on(tube)
            return [
                DONE,
                [],
                *(part for task in taken for part in (task.id, task.record.pack(), task.data)),
            ]
        if life.closed:
            self._waiting.pass_on("")
            return [CLOSED, []]
        if mode == WAIT:
            if tube:
                self._waiting.stand(ticket, tube)
        elif turn == "again":
            self._waiting.pass_on(tube)
        return [EMPTY, [], life.next_due(), b""]

    def _had(self, life: Life, owner: str, call: int) -> Reply:
        mine = (task for task in life.tasks.values() if task.record.owner == owner)
        parts = (
            (task.id, task.record.pack(), task.data) for task in mine if task.record.call == call
        )
        return [DONE, [], life.now, *(part for one in parts for part in one)]

    def _rouse(self, life: Life, entry: bytes, tube: str) -> Reply:
        self._waiting.pass_on(tube)
        return [DONE, []]

    @staticmethod
    def _held(life: Life, id: bytes, owner: str, call: int) -> Living | Reply:
        """The task, if the owner has it by that take; else the refusal."""
        task = life.tasks.get(id)
        if task is None:
            return [ABSENT, []]
        if task.record.state != states.TAKEN:
            return [WRONG, [], task.record.state.encode()]
        if (task.record.owner, task.record.call) != (owner, call):
            return [FOREIGN, [], task.record.owner.encode()]
        return task

    @staticmethod
    def _edit(task: Living, edits: int, data: bytes, digest: str) -> bool:
        """Change the data, unless it is no longer what the caller knows."""
        have = hashlib.sha1(task.data, usedforsecurity=False).hexdigest()
        if digest and digest != have:
            return False
        if edits:
            task.data = data
        return True

    def _in_hand(
        self, life: Life, id: bytes, owner: str, call: int, edit: tuple[Any, ...]
    ) -> Living | Reply:
        """The same, and its data are changed as the caller wants."""
        task = self._held(life, id, owner, call)
        if isinstance(task, Living) and not self._edit(task, *edit[:3]):
            return [CHANGED, []]
        return task

    def _ack(
        self,
        life: Life,
        id: bytes,
        owner: str,
        call: int,
        delay: int | str,
        tube: str,
        shift: int,
        *edit: Any,
    ) -> Reply:
        task = self._in_hand(life, id, owner, call, edit)
        if not isinstance(task, Living):
            return task
        life.process(task, delay, tube if shift else None)
        return _told(task, edit[3])

    def _next(self, life: Life, *ordinary: Any) -> Reply:
        """Two calls are as quick as one."""
        return [DECLINED]

    def _ack_many(self, life: Life, owner: str, number: int, *flat: Any) -> Reply:
        problems: list[Any] = []
        for place, (id, call) in enumerate(zip(flat[::2], flat[1::2], strict=True), 1):
            task = self._held(life, id, owner, call)
            if isinstance(task, Living):
                life.process(task, "", None)
            else:
                problems += place, task[2] if task[0] == WRONG else task[0]
        return [DONE, [], *problems]

    def _release(
        self,
        life: Life,
        id: bytes,
        owner: str,
        call: int,
        delay: int,
        ttl: int | str,
        priority: bytes,
        tube: str,
        shift: int,
        error: str,
        *edit: Any,
    ) -> Reply:
        task = self._in_hand(life, id, owner, call, edit)
        if not isinstance(task, Living):
            return task
        if priority:
            task.record = task.record._replace(priority=priority)
        life.give_back(task, error, delay, ttl, tube if shift else None)
        return _told(task, edit[3])

    def _bury(
        self,
        life: Life,
        id: bytes,
        owner: str,
        call: int,
        ttl: int,
        tube: str,
        shift: int,
        error: str,
        *edit: Any,
    ) -> Reply:
        task = self._in_hand(life, id, owner, call, edit)
        if not isinstance(task, Living):
            return task
        if error:
            task.record = task.record._replace(error=error)
        ends = life.now + ttl if ttl else 0
        life.turn(task, states.BURIED, ends, tube if shift else None)
        return _told(task, edit[3])

    def _touch(
        self, life: Life, id: bytes, owner: str, call: int, increment: int | str, *edit: Any
    ) -> Reply:
        ready = life.tasks.get(id) if call == 0 else None
        if ready is not None and ready.record.state == states.READY:
            if not self._edit(ready, *edit[:3]):
                return [CHANGED, []]
            task: Living | Reply = ready
        else:
            task = self._in_hand(life, id, owner, call, edit)
        if not isinstance(task, Living):
            return task
        due = task.record.due
        if due:
            usual = life.ttr if task.record.state == states.TAKEN else life.ttl
            later = max(due, life.now + usual) if increment == "" else due + int(increment)
            life.postpone(task, later)
        return _told(task, edit[3])

    def _change(
        self,
        life: Life,
        id: bytes,
        origins: str,
        to: str,
        delay: int,
        ttl: int | str,
        tube: str,
        shift: int,
        *edit: Any,
    ) -> Reply:
        task = life.tasks.get(id)
        if task is None:
            return [ABSENT, []]
        state = task.record.state
        if state not in origins:
            return [WRONG, [], state.encode()]
        if not self._edit(task, *edit):
            return [CHANGED, []]
        where = tube if shift else None
        if state == states.BURIED and to in (states.READY, states.WAITING):
            task.record = task.record._replace(deliveries=0)
        if not to and state == states.TAKEN:
            to = states.READY
        if not to:
            life.shift(task, tube)
        elif to == states.VOID:
            life.vanish(task, b"killed")
        elif to in (states.READY, states.WAITING):
            life.revive(task, delay, ttl, where)
        else:
            ends = life.zombie_until(delay or life.zombie) if to == states.ZOMBIE else 0
            life.turn(task, to, ends, where)
            if to != states.BURIED:
                life.conclude(task, b"processed")
        return _told(task, 1)

    def _kick(self, life: Life, limit: int, delay: int, ttl: int | str) -> Reply:
        buried = life.ordered(states.BURIED)[:limit]
        kicked = [task for task in buried if not 0 < task.record.due <= life.now]
        for task in buried:
            if task in kicked:
                task.record = task.record._replace(deliveries=0)
                life.revive(task, delay, ttl, None)
            else:
                life.lapse(task)
        return [DONE, [], len(buried), len(kicked)]

    def _length(self, life: Life, tube: str) -> Reply:
        ready = life.ordered(states.READY)
        return [DONE, [], sum(tube in ("", task.record.tube) for task in ready)]

    def _peek(self, life: Life, id: bytes) -> Reply:
        task = life.tasks.get(id)
        return _told(task, 1) if task else [ABSENT, []]

    def _list(self, life: Life, state: str, tube: str, start: int, limit: int) -> Reply:
        places = [task for task in life.ordered(state) if not tube or task.record.tube == tube]
        found = places[start : start + limit]
        columns = [[task.id for task in found], [task.record.pack() for task in found]]
        return [DONE, [], len(found), *columns, [task.data for task in found]]

    def _truncate(self, life: Life, limit: int) -> Reply:
        there = list(life.tasks.values())[:limit]
        for task in there:
            life.vanish(task, b"killed")
        return [DONE, [], len(there)]

    def _await(self, life: Life, id: bytes, ticket: str, mode: bytes, whole: int) -> Reply:
        task = life.tasks.get(id)
        told = [task.record.pack(), task.data if whole else b""] if task else [b"", b""]
        outcome = life.outcomes.pop(ticket, None)
        if outcome is None and task is not None:
            kept: dict[str, bytes] = {
                states.ZOMBIE: b"processed",
                states.DONE: b"processed",
                states.BURIED: b"buried",
            }
            outcome = kept.get(task.record.state)
        if outcome is not None:
            return [DONE, [], outcome, told[0], task.data if task else b""]
        if task is None:
            return [ABSENT, []]
        others = [other for other in life.awaited.pop(id, []) if other != ticket]
        if mode == WAIT:
            others.append(ticket)
        if others:
            life.awaited[id] = others
        return [UNFINISHED, [], *told]

    def _renew(self, life: Life, owner: str, lease: int, holds: int) -> Reply:
        if holds:
            life.presence[owner] = life.now + lease
        flat = [word for name, until in life.presence.items() for word in (name.encode(), until)]
        return [DONE, [], life.now, flat]

    def _requeue(
        self, life: Life, owner: str, seen: int | str, call: int | str, error: str, limit: int
    ) -> Reply:
        if seen != "" and life.presence.get(owner) != seen:
            return [RENEWED, []]
        held = [
            task
            for task in life.ordered(states.TAKEN)
            if task.record.owner == owner and call in ("", task.record.call)
        ][:limit]
        for task in held:
            life.give_back(task, error, 0, "", None)
        if call == "" and len(held) < limit:
            life.presence.pop(owner, None)
        return [DONE, [], len(held)]

    def _stats(self, life: Life) -> Reply:
        ready = [task.record.created for task in life.tasks.values() if task.record.state == "R"]
        flat: list[Any] = []
        for way, number in life.ways.items():
            flat += [way.encode(), number]
        return [DONE, [], life.now, life.created, min(ready, default=b""), int(life.closed), flat]

    def _close(self, life: Life) -> Reply:
        life.closed = True
        self._waiting.call_all()
        return [DONE, []]

    def _closed(self, life: Life) -> Reply:
        return [DONE, [], int(life.closed)]


def _told(task: Living, whole: int) -> Reply:
    return [DONE, [], task.record.pack(), task.data if whole else b""]
