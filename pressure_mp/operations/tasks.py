"""The operations of a queue of tasks, for producers and workers, in bytes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ..effects import (
    ABSENT,
    CHANGED,
    CLOSED,
    DONE,
    EMPTY,
    EXISTS,
    FOREIGN,
    MISMATCH,
    NOW,
    ONE_TRY,
    RENEWED,
    TICK,
    UNFINISHED,
    WAIT,
    WRONG,
    Call,
    Now,
    Operation,
    Park,
    Reply,
)
from ..exceptions import (
    Empty,
    NotOwner,
    NotTaken,
    PressureError,
    QueueAlreadyExistsError,
    QueueMismatchError,
    ShutDown,
    TaskError,
    TaskExists,
    TaskNotFound,
    WrongState,
)
from ..identity import ticket
from ..records import decode_id
from ..states import VOID, word
from ..task_settings import TaskSettings, load
from .batches import MOST_BYTES, MOST_ITEMS
from .queues import QueueOperations
from .turns import deadline

TASKS = "tasks"
FORMAT = "1"

#: The signal for one who takes from all tubes; who takes from one has a signal of its own.
_TASK = "task"
_BELL = "bell:"

#: Seconds beyond the moment at which a task is due: the server's clock may be read a bit later.
_GRACE = 0.001


class Raw(NamedTuple):
    """A task: its id, its record, its data."""

    id: bytes
    record: bytes
    data: bytes


class Edit(NamedTuple):
    """A change of a task's data: whether there is one, the new data, and the digest of the data
    that it is made of, "" if that does not matter."""

    changes: bool = False
    data: bytes = b""
    digest: str = ""

    @property
    def args(self) -> tuple[int, bytes, str]:
        """As an operation's arguments."""
        return int(self.changes), self.data, self.digest


class Changed(Exception):
    """The data is no longer what an edit was made of. Nothing was done."""


NO_EDIT = Edit()


class TaskOperations(QueueOperations):
    """Ids, data, priorities and records are bytes, times are milliseconds."""

    def __init__(self, name: str, lease: int) -> None:
        super().__init__(name, lease, TASKS)

    def open(
        self, how: str, settings: TaskSettings, user: str = "", stated: Collection[str] = ()
    ) -> Operation[TaskSettings]:
        """Create (``how="create"``), attach (``"attach"``), or either (``"open"``).

        It is created with ``settings``. Answers the queue's own, which are to agree with these in
        those that were ``stated``. Raises QueueAlreadyExistsError, QueueDoesNotExistError,
        QueueMismatchError.
        """
        times = settings.ttr, settings.ttl, settings.zombie
        numbers = (*times, int(settings.keep), settings.max_deliveries)
        args = (how, settings.dump(), self.discipline, FORMAT, user, *numbers)
        reply = yield from self._call("open", args)
        if reply[0] == EXISTS:
            raise QueueAlreadyExistsError(
                f"queue {self.name!r} exists already, with {load(reply[1])}"
            )
        if reply[0] == MISMATCH:
            what = reply[1].decode()
            wanted = {"format": FORMAT}.get(what, self.discipline)
            raise self._mismatch(what, reply[2].decode(), wanted)
        found = load(reply[1])
        others = [name for name in stated if getattr(found, name) != getattr(settings, name)]
        if others:
            raise QueueMismatchError(
                f"queue {self.name!r} exists with {found.tell(others)}, not {settings.tell(others)}"
            )
        return found

    def put(
        self,
        tasks: Sequence[tuple[bytes, bytes]],
        ids: str,
        delay: int,
        ttl: int | None,
        priority: bytes,
        tube: str,
        waits: str = "",
    ) -> Operation[list[bytes]]:
        """Add ``tasks``, each an id and data, in batches; answers their ids.

        ``ids`` says how one gets an id that has none. ``waits`` is the ticket of who waits until
        the first is processed. Raises ShutDown and TaskExists; then the error's ``accepted`` says
        how many were added.
        """
        added: list[bytes] = []
        try:
            while len(added) < len(tasks):
                batch = _next_batch(tasks, len(added))
                args = self.put_args(batch, ids, delay, ttl, priority, tube, waits)
                reply: Reply = yield Call("put", args)
                added += yield from self.added(reply)
        except PressureError as error:
            error.accepted = len(added)
            raise
        return added

    def put_args(
        self,
        tasks: Sequence[tuple[bytes, bytes]],
        ids: str,
        delay: int,
        ttl: int | None,
        priority: bytes,
        tube: str,
        waits: str = "",
    ) -> tuple[Any, ...]:
        """The arguments of a call of put, which adds so many tasks."""
        flat = [part for task in tasks for part in task]
        return ids, delay, or_none(ttl), priority, tube, waits, len(tasks), *flat

    def added(self, reply: Reply) -> Operation[list[bytes]]:
        """What a call of put comes to: the ids. Raises as :meth:`put`."""
        yield from self._heed(reply)
        if reply[0] == EXISTS:
            raise self._error(TaskExists, reply[2], reply[3].decode(), "there is one already")
        return reply[2:]

    def take(
        self,
        owner: str,
        call: int,
        limit: int,
        tube: str,
        ttr: int | None,
        block: bool,
        timeout: float | None,
    ) -> Operation[list[Raw]]:
        """Take the next tasks, up to ``limit`` and to what one call may take; waits for one.

        ``call`` is a number that the owner never used before. Raises Empty when the time is up, and
        ShutDown.
        """
        block = block and (timeout is None or timeout > 0)
        end = yield from deadline(block, timeout)
        size = (owner, call, min(limit, MOST_ITEMS), MOST_BYTES, or_none(ttr), tube)
        who = ticket()
        signal = f"{_BELL}{who}" if tube else _TASK
        mode, turn, entry = (WAIT if block else NOW), "first", b""
        try:
            while True:
                args = (*size, who, entry, mode, turn, self._lease)
                reply = yield from self._call("take", args, end)
                if reply == [DONE]:
                    _, had = yield from self._ask_again(owner, call)
                    if had:
                        return had
                    continue
                if reply[0] != EMPTY:
                    return _tasks(reply[2:])
                soon, entry = reply[2], reply[3]
                if soon == 0:
                    continue
                if mode == NOW:
                    raise self._empty(tube, timeout)
                turn = "again"
                limit_now = yield from _time_left(end)
                if limit_now is not None and limit_now <= 0:
                    mode = NOW
                    continue
                waits = [limit_now, TICK, soon / 1000 + _GRACE if soon != b"" else None]
                yield Park(signal, min(wait for wait in waits if wait is not None))
        except (GeneratorExit, Empty, ShutDown):
            raise
        except BaseException:
            # Whatever ended the wait: what woke us, or was to wake us, is for another.
            if turn == "again":
                yield from self._let_go(entry, tube)
            raise

    def next_args(
        self, task: bytes, fence: int, owner: str, call: int, ttr: int | None
    ) -> tuple[Any, ...]:
        """The arguments of a call of next, which acknowledges a task, taken under the number
        ``fence``, and takes the next one: each if it is ordinary, see its script."""
        return task, fence, owner, call, or_none(ttr), self._lease

    def following(self, reply: Reply, owner: str, call: int) -> Operation[tuple[int, list[Raw]]]:
        """What it comes to: the broker's time, 0 when nothing was done, and what was taken."""
        if reply == [DONE]:
            return (yield from self._ask_again(owner, call))
        if reply[0] != DONE:
            return 0, []
        return int(reply[1]), _tasks(reply[2:])

    def _ask_again(self, owner: str, call: int) -> Operation[tuple[int, list[Raw]]]:
        """The broker's time, and what a take got whose reply was lost. It may have it no longer."""
        reply = yield from self._call("had", (owner, call))
        return reply[2], _tasks(reply[3:])

    def _empty(self, tube: str, timeout: float | None) -> Empty:
        where = f"tube {tube!r} of queue {self.name!r}" if tube else f"queue {self.name!r}"
        still = f", still after {timeout:g} s" if timeout else ""
        return Empty(f"{where} has no task that is ready{still}")

    def _let_go(self, entry: bytes, tube: str) -> Operation[None]:
        try:
            reply: Reply = yield Call("rouse", (entry, tube), ONE_TRY)
            yield from _ring(reply)
        except PressureError:
            pass  # the others look by themselves

    def ack(
        self,
        task: bytes,
        owner: str,
        call: int,
        delay: int | None,
        tube: str | None,
        edit: Edit,
        whole: bool,
    ) -> Operation[Raw]:
        """A task was processed. ``delay`` is for how long it stays as a zombie, ``tube`` where it
        goes to. Answers it, with its data only if it is to be told ``whole``.

        Raises NotTaken, NotOwner, TaskNotFound; and Changed, as the next three do.
        """
        args = (or_none(delay), *_shift(tube), *edit.args)
        return (yield from self._by_taker("ack", task, owner, call, args, whole))

    def ack_many(
        self, tasks: Sequence[tuple[bytes, int]], owner: str
    ) -> Operation[list[PressureError | None]]:
        """Tasks were processed, each an id and the number of the take that has it; in batches.

        Answers what is wrong with each, None if nothing.
        """
        problems: list[PressureError | None] = []
        for start in range(0, len(tasks), MOST_ITEMS):
            batch = tasks[start : start + MOST_ITEMS]
            flat = [part for task in batch for part in task]
            reply = yield from self._call("ack_many", (owner, len(batch), *flat))
            found: list[PressureError | None] = [None] * len(batch)
            for place, why in zip(reply[2::2], reply[3::2], strict=True):
                refusal = [WRONG, [], why] if len(why) == 1 else [why, [], b"another take"]
                found[place - 1] = self._refusal(refusal, batch[place - 1][0], "ack")
            problems += found
        return problems

    def release(
        self,
        task: bytes,
        owner: str,
        call: int,
        delay: int,
        ttl: int | None,
        priority: bytes,
        tube: str | None,
        error: str,
        edit: Edit,
        whole: bool,
    ) -> Operation[Raw]:
        """A taken task is given back; an empty ``priority`` and ``error`` leave what there is."""
        args = (delay, or_none(ttl), priority, *_shift(tube), _text(error), *edit.args)
        return (yield from self._by_taker("release", task, owner, call, args, whole))

    def bury(
        self,
        task: bytes,
        owner: str,
        call: int,
        ttl: int,
        tube: str | None,
        error: str,
        edit: Edit,
        whole: bool,
    ) -> Operation[Raw]:
        """A taken task is put aside, for good or until ``ttl`` has passed."""
        args = (ttl, *_shift(tube), _text(error), *edit.args)
        return (yield from self._by_taker("bury", task, owner, call, args, whole))

    def touch(
        self, task: bytes, owner: str, call: int, increment: int | None, edit: Edit, whole: bool
    ) -> Operation[Raw]:
        """A taken task is kept for longer; without ``increment`` for the queue's ttr from now. With
        ``call`` 0 a ready one is, and its ttl is what counts."""
        args = (or_none(increment), *edit.args)
        return (yield from self._by_taker("touch", task, owner, call, args, whole))

    def _by_taker(
        self, op: str, task: bytes, owner: str, call: int, args: tuple[Any, ...], whole: bool
    ) -> Operation[Raw]:
        reply = yield from self._call(op, (task, owner, call, *args, int(whole)))
        self._check_task(reply, task, op)
        return Raw(task, reply[2], reply[3])

    def length(self, tube: str) -> Operation[int]:
        """How many tasks are ready, of one tube or, if that is "", of all."""
        reply = yield from self._call("length", (tube,))
        return int(reply[2])

    def peek(self, task: bytes) -> Operation[Raw]:
        """A task as it is. Raises TaskNotFound."""
        reply = yield from self._call("peek", (task,))
        self._check_task(reply, task, "peek")
        return Raw(task, reply[2], reply[3])

    def wait(
        self, task: bytes, who: str, timeout: float | None, known: Raw | None = None
    ) -> Operation[tuple[Raw, bool]]:
        """Wait until a task was processed; answers it as it was last, and whether it was.

        ``known`` is the task as the caller knows it, if it does; without, it must be there. When it
        is gone it is in state X. Raises TaskNotFound.
        """
        end = yield from deadline(True, timeout)
        mode = WAIT
        while True:
            args = (task, who, mode, int(known is None))
            reply = yield from self._call("await", args, end)
            if reply[0] == ABSENT:
                if known is None:
                    self._check_task(reply, task, "wait")
                    raise AssertionError("an absent task is an error")
                return _gone(known), False
            record, data = reply[-2:]
            if known is None or (record and reply[0] != UNFINISHED):
                known = Raw(task, record, data)
            elif record:
                known = known._replace(record=record)
            if reply[0] != UNFINISHED:
                processed = bool(reply[2] == b"processed")
                return (known if record else _gone(known)), processed
            left = yield from _time_left(end)
            if mode == NOW:
                return known, False
            if left is not None and left <= 0:
                mode = NOW
                continue
            yield Park(f"{_BELL}{who}", TICK if left is None else min(left, TICK))

    def close(self) -> Operation[None]:
        """Shut the queue down for everyone, for good."""
        yield from self._call("close", ())

    def closed(self) -> Operation[bool]:
        """Whether the queue was shut down."""
        reply = yield from self._call("closed", ())
        return bool(reply[2])

    def delete(self) -> Operation[None]:
        """Remove the queue."""
        reply: Reply = yield Call("delete")
        self._check(reply)

    def renew(self, owner: str, holds: bool) -> Operation[tuple[int, dict[str, int]]]:
        """Renew the owner's lease as one who has tasks, if it ``holds`` any; answers the broker's
        time, and when the lease of each owner ends."""
        reply = yield from self._call("renew", (owner, self._lease, int(holds)))
        names = [name.decode(errors="replace") for name in reply[3][::2]]
        return int(reply[2]), dict(zip(names, map(int, reply[3][1::2]), strict=True))

    def requeue(
        self, owner: str, error: str, seen: int | None = None, call: int | None = None
    ) -> Operation[int]:
        """Give back what ``owner`` has taken, with ``error``; answers how many tasks.

        With ``seen`` only if its lease still ends then, with ``call`` only what it took in that
        call.
        """
        number = 0
        reply: Reply
        while True:
            args = or_none(seen), or_none(call)
            reply = yield from self._call("requeue", (owner, *args, _text(error), MOST_ITEMS))
            if reply[0] == RENEWED:
                return number
            number += int(reply[2])
            if reply[2] < MOST_ITEMS:
                return number

    def _call(self, op: str, args: tuple[Any, ...], end: float | None = None) -> Operation[Reply]:
        """Call; wake those whom the reply names; raise what means the same for all operations."""
        reply: Reply = yield Call(op, args, end)
        return (yield from self._heed(reply))

    def _heed(self, reply: Reply) -> Operation[Reply]:
        """What a reply says that means the same for all operations."""
        yield from _ring(reply)
        if reply[0] == CLOSED:
            raise ShutDown(f"queue {self.name!r} is shut down")
        return self._check(reply)

    def _check_task(self, reply: Reply, task: bytes, op: str) -> None:
        if reply[0] == CHANGED:
            raise Changed
        if reply[0] in (ABSENT, WRONG, FOREIGN):
            raise self._refusal(reply, task, op)

    def _refusal(self, reply: Reply, task: bytes, op: str) -> TaskError:
        if reply[0] == ABSENT:
            why = "it was never put, or it was processed, killed, or dropped"
            return self._error(TaskNotFound, task, "X", why)
        if reply[0] == FOREIGN:
            who = reply[2].decode(errors="replace")
            return self._error(NotOwner, task, "T", f"{op} is for its owner, which is {who}")
        state = reply[2].decode()
        if op in ("ack", "release", "bury", "touch", "snatch"):
            taken = "taken, or ready with a ttl" if op == "touch" else "taken"
            return self._error(NotTaken, task, state, f"{op} is for a task that is {taken}")
        return self._error(WrongState, task, state, f"{op} is not for that state")

    def _error(self, kind: type[TaskError], task: bytes, state: str, why: str) -> TaskError:
        named = decode_id(task)
        text = f"task {named!r} of queue {self.name!r} is {word(state)} ({state}): {why}"
        return kind(text, named, state)


def _tasks(flat: Sequence[Any]) -> list[Raw]:
    """The tasks in a reply, each an id, a record and data."""
    return [*map(Raw, flat[::3], flat[1::3], flat[2::3])]


def _gone(known: Raw) -> Raw:
    return known._replace(record=VOID.encode() + known.record[1:])


def _ring(reply: Reply) -> Operation[None]:
    """Wake those whom a reply names, if it names any."""
    if len(reply) > 1 and type(reply[1]) is list and reply[1]:
        yield Call("ring", tuple(ticket.decode() for ticket in reply[1]))


def _time_left(end: float | None) -> Operation[float | None]:
    if end is None:
        return None
    now: float = yield Now()
    return end - now


def or_none(number: int | None) -> int | str:
    """A number as an argument, "" for none."""
    return "" if number is None else number


def _shift(tube: str | None) -> tuple[str, int]:
    """The tube where a task goes, and whether it goes anywhere."""
    return ("", 0) if tube is None else (tube, 1)


def _text(error: str) -> str:
    """What is kept of an error's text."""
    return error.replace("\0", " ")[:1000]


def _next_batch(tasks: Sequence[tuple[bytes, bytes]], start: int) -> Sequence[tuple[bytes, bytes]]:
    """The tasks from ``start`` on that one call can have; at least one."""
    batch = tasks[start : start + MOST_ITEMS]
    size = 0
    for count, (_, data) in enumerate(batch):
        size += len(data)
        if size > MOST_BYTES:
            return batch[: max(count, 1)]
    return batch
