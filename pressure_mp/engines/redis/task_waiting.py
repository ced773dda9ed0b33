"""Who waits on a server for a task, or for what becomes of one.

Who waits for any task stands in line at the list ``wake``, whose one element the server gives to
the first. Who waits for one of a tube, or for what becomes of one, listens at a list of its own,
its bell, and is noted so that others ring it. For one that was woken and does not look, another is.

Who waits for what an inbox hears is called by the inbox's name. A worker knows that from the task
that it acknowledges: so its script rings that bell by itself, and puts the notice there. Who hears
all notices so need not ask for them: it waits on, and asks now and then.
"""

from __future__ import annotations

import struct
from typing import Any

from ...exceptions import PressureError
from ...identity.client import ticket
from ..contract.items import MOST_BYTES, MOST_ITEMS
from ..contract.replies import Later, NoNotice, NoTask, Outcome, Unprocessed
from ..contract.session import ONE_TRY
from ..contract.task_records import StoredTask
from ..contract.task_results import ABSENT as ABSENT_EVENT
from ..contract.task_results import (
    TAKEN,
    Notice,
    Result,
    TakenNotices,
    TakeNotices,
    TakeNoticesReply,
)
from ..contract.tasks import (
    AwaitTask,
    AwaitTaskReply,
    FinishedTask,
    TakenTasks,
    TakeTasks,
    TakeTasksReply,
)
from .binding import RedisBinding
from .caller import Call, Caller
from .implementations import does
from .listening import Listening
from .one_script import bells_in
from .statuses import ABSENT, CLOSED, DONE, DUE, EMPTY, LOST, MISSING, NOW, UNFINISHED, WAIT, Reply
from .task_records import PackedRecord, read_tasks

#: The signal for one who takes from all tubes; who waits for something else has a bell.
_TASK = "task"
_BELL = "bell:"

#: Seconds beyond the moment at which a task is due: the server's clock may be read a bit later.
_GRACE = 0.001


class TaskWaiter:
    """A session that waits, or may: what it keeps of that."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._ticket = ""
        #: What the script noted for one who waits for a task of a tube.
        self.entry = b""
        self.tube = ""
        #: The server's reply to its last wait.
        self.heard: Any = None
        #: Whether it waited for a task, or was about to, and was not served since.
        self.looks_again = False
        #: The call that one in line makes when it is woken, if that may take as long as it likes.
        self._then: Call | None = None
        #: What it knows of the inbox for which it waits.
        self.listening: Listening | None = None

    @property
    def ticket(self) -> str:
        """What others call this session by."""
        if not self._ticket:
            self._ticket = ticket()
        return self._ticket

    @ticket.setter
    def ticket(self, ticket: str) -> None:
        self._ticket = ticket

    def begin(self, entry: bytes, request: TakeTasks, end: float | None) -> None:
        """It is about to wait for a task."""
        self.entry, self.tube, self.looks_again = entry, request.tube, True
        self._then = None
        if end is None and self._caller.receives:
            self._then = Call("take", take_args(self._caller.binding, request, self))

    async def wait(self, later: Later, timeout: float | None) -> bool:
        """Wait for a task, or for what becomes of one."""
        in_line = isinstance(later, NoTask) and not later.tube
        if isinstance(later, NoTask) and later.due is not None:
            soon = later.due / 1000 + _GRACE
            timeout = soon if timeout is None else min(timeout, soon)
        then = self._then if in_line else None
        signal = _TASK if in_line else f"{_BELL}{self.ticket}"
        came = await self._caller.park(signal, timeout, then)
        self.heard = self._caller.heard
        return came

    async def end(self) -> None:
        """What woke it, or was to wake it, is for another."""
        if not self.looks_again:
            return
        self.looks_again = False
        try:
            await ask(self._caller, "rouse", (self.entry, self.tube), ONE_TRY)
        except PressureError:
            pass  # the others look by themselves


def waiter_of(caller: Caller) -> TaskWaiter:
    """The session's, which is made when it is first needed."""
    waiter = caller.waiter
    if waiter is None:
        waiter = caller.waiter = TaskWaiter(caller)
    assert isinstance(waiter, TaskWaiter)
    return waiter


async def ask(caller: Caller, op: str, args: tuple[Any, ...], end: float | None) -> Reply:
    """Run a script; wake those whom its reply names."""
    reply = await caller.script(op, args, end)
    if bells := bells_in(reply):
        await caller.script("ring", bells)
    return reply


def or_none(number: int | None) -> int | bytes:
    """A number as an argument, empty for none."""
    return b"" if number is None else number


def take_args(
    binding: RedisBinding, request: TakeTasks, waiter: TaskWaiter | None
) -> tuple[Any, ...]:
    """The arguments of a take."""
    owner, call, limit, tube, ttr, _, waits, retries_alone = request
    who, entry, turn = b"", b"", b"first"
    if waiter is not None and tube:
        who = waiter.ticket.encode()
    if waiter is not None and waiter.looks_again:
        entry, turn = waiter.entry, b"again"
    size = owner.encode(), call, min(limit, MOST_ITEMS), MOST_BYTES, or_none(ttr), tube.encode()
    how = WAIT if waits else NOW, turn, binding.options.lease, int(retries_alone)
    return (*size, who, entry, *how)


async def take(
    caller: Caller, request: TakeTasks, end: float | None, reply: Reply | None
) -> TakeTasksReply:
    """:class:`TakeTasks` without an ``ack``, from the reply of the first script on, if it was
    called."""
    tube = request.tube
    waiter = waiter_of(caller) if tube or caller.waiter is not None else None
    while True:
        was_sent = caller.has_sent
        if reply is None:
            reply = await _look_or_take(caller, request, waiter, end)
        if bells := bells_in(reply):
            await caller.script("ring", bells)
        status = reply[0]
        if status == EMPTY and reply[2] == 0:  # such as should have been gone were in the way
            reply = None
            continue
        if status == EMPTY:
            if request.waits:
                waiter = waiter_of(caller)
                waiter.begin(reply[3], request, end)
            elif waiter is not None:
                waiter.looks_again = was_sent  # that call did not pass on what woke it
            return NoTask(tube, None if reply[2] == b"" else reply[2])
        if status == DONE and len(reply) == 1:  # it was done before, and the reply lost
            reply = None
            _, tasks = await had(caller, request.owner, request.call, end)
            if not tasks:
                continue
        else:
            tasks = read_tasks(reply[2:])
        if waiter is not None:
            waiter.looks_again = False
        if status == DONE:
            return TakenTasks(tasks)
        return Outcome.CLOSED if status == CLOSED else Outcome.MISSING


async def _look_or_take(
    caller: Caller, request: TakeTasks, waiter: TaskWaiter | None, end: float | None
) -> Reply:
    """The reply to a take. One who is in line still takes only if there is reason to: else it keeps
    its place."""
    if caller.has_sent and waiter is not None and request.waits:
        looked = await caller.script("look", (), end)
        if looked[0] == EMPTY:
            return [*looked, waiter.entry]
        if bells := bells_in(looked):
            await caller.script("ring", bells)
    return await caller.script("take", take_args(caller.binding, request, waiter), end)


async def had(
    caller: Caller, owner: str, call: int, end: float | None
) -> tuple[int, list[StoredTask]]:
    """The server's time, 0 if there is no queue; and what a take got whose reply was lost. It may
    have it no longer."""
    reply = await ask(caller, "had", (owner, call), end)
    return (reply[2], read_tasks(reply[3:])) if reply[0] == DONE else (0, [])


@does(AwaitTask)
async def await_task(caller: Caller, request: AwaitTask, end: float | None) -> AwaitTaskReply:
    who = waiter_of(caller).ticket
    mode = WAIT if request.waits else NOW
    reply = await ask(caller, "await", (request.id, who, mode, int(request.whole)), end)
    if reply[0] == ABSENT:
        return Outcome.ABSENT
    if reply[0] == MISSING:
        return Outcome.MISSING
    if reply[0] == UNFINISHED:
        return Unprocessed(StoredTask(request.id, PackedRecord(reply[2]), reply[3]))
    _, _, outcome, record, data, is_kept, said, token = reply
    task = StoredTask(request.id, PackedRecord(record), data) if record else None
    result = Result(said, token.decode()) if is_kept else None
    return FinishedTask(outcome.decode(), task, result)


@does(TakeNotices)
async def take_notices(caller: Caller, request: TakeNotices, end: float | None) -> TakeNoticesReply:
    inbox, seen, limit, waits = request
    waiter, binding = waiter_of(caller), caller.binding
    waiter.ticket = inbox
    notice = _notice_heard(waiter)
    if notice is not None and notice.number == seen + 1 and waiter.listening is not None:
        waiter.listening.note(notice.number)
        binding.listening = waiter.listening
        return TakenNotices([notice])
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
        return TakenNotices(list(map(_notice, *[parts] * _PARTS)))
    if reply[0] == EMPTY:
        waiter.listening = Listening(inbox, seen)
        return NoNotice()
    return Outcome.LOST if reply[0] == LOST else Outcome.MISSING


#: What an event is called, by its letter in a notice.
_EVENTS = {
    b"P": "processed",
    b"B": "buried",
    b"K": "killed",
    b"D": "dropped",
    b"T": TAKEN,
    b"A": ABSENT_EVENT,
}
#: Of how many parts a notice is.
_PARTS = 8


#: What a notice on a bell begins with: its number, how often the task was delivered, whether a
#: result is kept, and how long the last error is, and the token of a content.
_RUNG = struct.Struct(">QI?IB")


def _notice_heard(waiter: TaskWaiter) -> Notice | None:
    """The notice that a worker put to the bell, of a task that was processed; it is told once."""
    reply, waiter.heard = waiter.heard, None
    if type(reply) is not list or len(reply[1]) < _RUNG.size:
        return None
    _, said = reply
    number, deliveries, is_kept, error_size, token_size = _RUNG.unpack_from(said)
    error_ends = _RUNG.size + error_size
    token_ends = error_ends + token_size
    id, _, result = said[token_ends:].partition(b"\0")
    error, token = said[_RUNG.size : error_ends], said[error_ends:token_ends]
    return _notice(number, id, b"P", deliveries, error, is_kept, result, token)


def _notice(
    number: int,
    id: bytes,
    event: bytes,
    deliveries: int,
    error: bytes,
    is_kept: int | bool,
    said: bytes,
    token: bytes,
) -> Notice:
    result = Result(said, token.decode()) if is_kept else None
    return Notice(number, id, _EVENTS[event], deliveries, error.decode(errors="replace"), result)
