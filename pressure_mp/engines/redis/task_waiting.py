"""Waiting at a server for a task, for space, for the end of a task, or for notices of an inbox.

A session that waits for a task of any tube is in line at the list ``wake``, whose one element the
server gives to the first. A session that waits for a task of one tube, for space, or for the end of
a task, waits on a list of its own, its bell, and is noted so that other clients ring it. If a woken
session does not make its call, another one is woken.

The bell of a session that waits for notices has the name of the inbox. The record of a task has
that name: so the script that acknowledges the task puts the notice on that bell itself. A session
that receives all notices in this way makes no request for them: it waits on, and makes one now and
then.
"""

from __future__ import annotations

import struct
from typing import Any

from ...exceptions import PressureError
from ...identity.client import ticket
from ..contract import task_results as r
from ..contract import tasks as t
from ..contract.items import MOST_BYTES, MOST_ITEMS
from ..contract.replies import Later, NoNotice, NoSpace, NoTask, Outcome, Unprocessed
from ..contract.session import ONE_TRY
from ..contract.task_records import StoredTask
from .binding import RedisBinding
from .caller import Call, Caller, does
from .listening import Listening
from .one_script import bells_in
from .packing import or_none
from .signals import BELL
from .statuses import ABSENT, CLOSED, DONE, DUE, EMPTY, LOST, MISSING, NOW, UNFINISHED, WAIT, Reply
from .task_records import PackedRecord, read_tasks

#: The signal for takes from all tubes; all other waits have a bell.
_TASK = "task"

#: Seconds to wait beyond the moment at which a task is due, as the server may read its clock a bit
#: late.
_GRACE = 0.001


class TaskWaiter:
    """The waiting state of one session at a queue of tasks."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._ticket = ""
        #: The entry that the script made for a wait for a task of a tube, or for space.
        self.entry = b""
        self.tube = ""
        #: Whether there was no space for its put.
        self.puts = False
        #: The server's reply to its last wait.
        self.wait_reply: Any = None
        #: Whether the session must pass a wake-up on: it waited for a task, or was about to, and
        #: was not served since.
        self.passes_on = False
        #: The call to make when the session in line is woken, if that call has no time limit.
        self._then: Call | None = None
        #: The state of the inbox for whose notices it waits.
        self.listening: Listening | None = None

    @property
    def ticket(self) -> str:
        """The name by which other clients wake this session."""
        if not self._ticket:
            self._ticket = ticket()
        return self._ticket

    @ticket.setter
    def ticket(self, ticket: str) -> None:
        self._ticket = ticket

    def begin(self, entry: bytes, request: t.TakeTasks, end: float | None) -> None:
        """Note that the session is about to wait for a task."""
        self.entry, self.tube, self.passes_on = entry, request.tube, True
        self._then = None
        if end is None and self._caller.receives:
            self._then = Call("take", take_args(self._caller.binding, request, self))

    async def wait(self, later: Later, timeout: float | None) -> bool:
        if isinstance(later, NoSpace) and not self.entry:
            return True
        in_line = isinstance(later, NoTask) and not later.tube
        if isinstance(later, NoTask) and later.due is not None:
            soon = later.due / 1000 + _GRACE
            timeout = soon if timeout is None else min(timeout, soon)
        then = self._then if in_line else None
        signal = _TASK if in_line else f"{BELL}{self.ticket}"
        came = await self._caller.park(signal, timeout, then)
        self.wait_reply = self._caller.wait_reply
        return came

    def left_behind(self) -> tuple[bytes, str] | None:
        """Return the arguments of the call that passes a wake-up on, once; None if none is to."""
        if not self.passes_on:
            return None
        self.passes_on = False
        # The reply that has the entry may not have been read.
        return self.entry or (self.ticket.encode() if self.puts else b""), self.tube

    async def end(self) -> None:
        """Pass a wake-up of this session on to another one."""
        wish = self.left_behind()
        if wish is None:
            return
        try:
            await ask(self._caller, "wake_another", wish, ONE_TRY)
        except PressureError:
            pass  # the other waiters call again by themselves


def waiter_of(caller: Caller) -> TaskWaiter:
    """Return the session's waiter, which is made when it is first needed."""
    waiter = caller.waiter
    if waiter is None:
        waiter = caller.waiter = TaskWaiter(caller)
    assert isinstance(waiter, TaskWaiter)
    return waiter


async def ask(caller: Caller, op: str, args: tuple[Any, ...], end: float | None) -> Reply:
    """Run a script, and wake the waiters that its reply has."""
    reply = await caller.script(op, args, end)
    if bells := bells_in(reply):
        await caller.script("ring", bells)
    return reply


def place_of(caller: Caller) -> bytes:
    """Return the place in line of a put, for its script, which may give it one."""
    waiter = caller.waiter
    if not isinstance(waiter, TaskWaiter) or not waiter.puts:
        return b""
    waiter.passes_on = True
    return waiter.entry or waiter.ticket.encode()


def take_args(
    binding: RedisBinding, request: t.TakeTasks, waiter: TaskWaiter | None
) -> tuple[Any, ...]:
    owner, call, limit, tube, ttr, _, waits, retries_alone, apart = request
    ticket, entry, turn = b"", b"", b"first"
    if waiter is not None and tube:
        ticket = waiter.ticket.encode()
    if waiter is not None and waiter.passes_on:
        entry, turn = waiter.entry, b"again"
    size = owner.encode(), call, min(limit, MOST_ITEMS), MOST_BYTES, or_none(ttr), tube.encode()
    how = WAIT if waits else NOW, turn, binding.options.lease, int(retries_alone), int(apart)
    return (*size, ticket, entry, *how)


async def take(
    caller: Caller, request: t.TakeTasks, end: float | None, reply: Reply | None
) -> t.TakeTasksReply:
    """Do :class:`TakeTasks` without ``acks``, from the reply of the first script on, if it was
    called."""
    tube = request.tube
    waiter = waiter_of(caller) if tube or caller.waiter is not None else None
    while True:
        was_sent = caller.has_sent
        if reply is None:
            reply = await _check_or_take(caller, request, waiter, end)
        if bells := bells_in(reply):
            await caller.script("ring", bells)
        status = reply[0]
        if status == EMPTY and reply[2] == 0:  # tasks whose time was over were in the way
            reply = None
            continue
        if status == EMPTY:
            if request.waits:
                waiter = waiter_of(caller)
                waiter.begin(reply[3], request, end)
            elif waiter is not None:
                waiter.passes_on = was_sent  # that call did not pass the wake-up on
            return NoTask(tube, None if reply[2] == b"" else reply[2])
        if status == DONE and len(reply) == 1:  # it was done before, and its reply was lost
            reply = None
            _, tasks = await had(caller, request.owner, request.call, end)
            if not tasks:
                continue
        else:
            tasks = read_tasks(reply[2:])
        if waiter is not None:
            waiter.passes_on = False
        if status == DONE:
            return t.TakenTasks(tasks)
        return Outcome.CLOSED if status == CLOSED else Outcome.MISSING


async def _check_or_take(
    caller: Caller, request: t.TakeTasks, waiter: TaskWaiter | None, end: float | None
) -> Reply:
    """Make the call of a take. A session that is still in line takes only if a task is ready;
    otherwise it keeps its place."""
    if caller.has_sent and waiter is not None and request.waits:
        checked = await caller.script("check_ready", (), end)
        if checked[0] == EMPTY:
            return [*checked, waiter.entry]
        if bells := bells_in(checked):
            await caller.script("ring", bells)
    return await caller.script("take", take_args(caller.binding, request, waiter), end)


async def had(
    caller: Caller, owner: str, call: int, end: float | None
) -> tuple[int, list[StoredTask]]:
    """Return the server's time, 0 if the queue does not exist; and the tasks of a take whose reply
    was lost, as far as it still has them."""
    reply = await ask(caller, "read_take", (owner, call), end)
    return (reply[2], read_tasks(reply[3:])) if reply[0] == DONE else (0, [])


@does(t.AwaitTask)
async def await_task(caller: Caller, request: t.AwaitTask, end: float | None) -> t.AwaitTaskReply:
    ticket = waiter_of(caller).ticket
    mode = WAIT if request.waits else NOW
    reply = await ask(caller, "await", (request.id, ticket, mode, int(request.whole)), end)
    if reply[0] == ABSENT:
        return Outcome.ABSENT
    if reply[0] == MISSING:
        return Outcome.MISSING
    if reply[0] == UNFINISHED:
        return Unprocessed(StoredTask(request.id, PackedRecord(reply[2]), reply[3]))
    _, _, outcome, record, data, is_kept, said, token = reply
    task = StoredTask(request.id, PackedRecord(record), data) if record else None
    result = r.Result(said, token.decode()) if is_kept else None
    return t.FinishedTask(outcome.decode(), task, result)


@does(r.TakeNotices)
async def take_notices(
    caller: Caller, request: r.TakeNotices, end: float | None
) -> r.TakeNoticesReply:
    inbox, seen, limit, waits = request
    waiter, binding = waiter_of(caller), caller.binding
    waiter.ticket = inbox
    notice = _notice_heard(waiter)
    if notice is not None and notice.number == seen + 1 and waiter.listening is not None:
        waiter.listening.note(notice.number)
        binding.listening = waiter.listening
        return r.TakenNotices([notice])
    listening, binding.listening = binding.listening, None
    if waits and listening is not None and listening.goes_on(inbox, seen):
        waiter.listening = listening
        return NoNotice()
    args = inbox, seen, limit, MOST_BYTES, WAIT if waits else NOW
    while True:
        reply = await caller.script("notices", args, end)
        if reply[0] != DUE:
            break
        await ask(caller, "sweep", ("",), end)
    if reply[0] == DONE:
        parts = iter(reply[2:])
        return r.TakenNotices(list(map(_notice, *[parts] * _PARTS)))
    if reply[0] == EMPTY:
        waiter.listening = Listening(inbox, seen)
        return NoNotice()
    return Outcome.LOST if reply[0] == LOST else Outcome.MISSING


#: The events, by their letters in a notice.
_EVENTS = {
    b"P": "processed",
    b"B": "buried",
    b"K": "killed",
    b"D": "dropped",
    b"T": r.TAKEN,
    b"G": r.PROGRESS,
    b"A": r.ABSENT,
}
#: The number of parts of a notice.
_PARTS = 8


#: The beginning of a notice on a bell: its number, the number of deliveries, whether a result is
#: kept, and the lengths of the report and of the token of a content.
_RUNG = struct.Struct(">QI?IB")


def _notice_heard(waiter: TaskWaiter) -> r.Notice | None:
    """Read the notice of a processed task that came on the bell, once."""
    reply, waiter.wait_reply = waiter.wait_reply, None
    if type(reply) is not list or len(reply[1]) < _RUNG.size:
        return None
    _, said = reply
    number, deliveries, is_kept, report_size, token_size = _RUNG.unpack_from(said)
    report_ends = _RUNG.size + report_size
    token_ends = report_ends + token_size
    id, _, result = said[token_ends:].partition(b"\0")
    report, token = said[_RUNG.size : report_ends], said[report_ends:token_ends]
    return _notice(number, id, b"P", deliveries, report, is_kept, result, token)


def _notice(
    number: int,
    id: bytes,
    event: bytes,
    deliveries: int,
    report: bytes,
    is_kept: int | bool,
    said: bytes,
    token: bytes,
) -> r.Notice:
    result = r.Result(said, token.decode()) if is_kept else None
    return r.Notice(number, id, _EVENTS[event], deliveries, report.decode(errors="replace"), result)
