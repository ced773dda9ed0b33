"""What becomes of one task: by its taker, or by an administrator."""

from __future__ import annotations

from ... import states
from ...exhaustive import assert_never
from ..contract.replies import Outcome
from ..contract.task_administration import ChangeTask, ChangeTaskReply
from ..contract.task_records import Edit
from ..contract.task_results import NO_RESULT, Result
from ..contract.tasks import (
    AckTask,
    AckTasks,
    AckTasksReply,
    BuryTask,
    OtherOwner,
    OtherState,
    Refusal,
    ReleaseTask,
    SettledReply,
    SettleRequest,
    TouchTask,
)
from .life import OUTCOMES, Life, Living


def held(life: Life, id: bytes, owner: str, call: int) -> Living | Refusal:
    """The task, if the owner has it by that take."""
    task = life.tasks.get(id)
    if task is None:
        return Outcome.ABSENT
    if task.record.state != states.TAKEN:
        return OtherState(task.record.state)
    if (task.record.owner, task.record.call) != (owner, call):
        return OtherOwner(task.record.owner)
    return task


def has_content(life: Life, result: Result) -> bool:
    """Whether the content of a result is there, if it has one."""
    return not result.token or life.results.contents.is_kept(result.token)


def settle(life: Life, request: SettleRequest) -> SettledReply:
    task: Living | Refusal | None = None
    if isinstance(request, TouchTask) and request.call == 0:
        ready = life.tasks.get(request.id)
        task = ready if ready is not None and ready.record.state == states.READY else None
    task = task or held(life, request.id, request.owner, request.call)
    if not isinstance(task, Living):
        return task
    result = NO_RESULT if isinstance(request, TouchTask) else request.result
    if not has_content(life, result):
        return Outcome.LOST
    if not _change_data(task, request.edit):
        return Outcome.CHANGED
    match request:
        case AckTask():
            life.process(task, request.delay, request.tube)
        case ReleaseTask():
            if request.priority is not None:
                task.record = task.record._replace(priority=request.priority)
            life.give_back(task, request.error, request.delay, request.ttl, request.tube)
        case BuryTask():
            if request.error:
                task.record = task.record._replace(error=request.error)
            ends = life.now + request.ttl if request.ttl else 0
            life.turn(task, states.BURIED, ends, request.tube)
        case TouchTask():
            _touch(life, task, request.increment)
        case _:
            assert_never(request)
    if not isinstance(request, TouchTask):
        life.results.say(task.id, result, task.record.state in (*OUTCOMES, states.VOID))
    return task.stored(request.whole)


def _touch(life: Life, task: Living, increment: int | None) -> None:
    due = task.record.due
    if due and increment is not None:
        life.postpone(task, due + increment)
    elif due:
        is_taken = task.record.state == states.TAKEN
        usual = life.settings.ttr if is_taken else life.settings.ttl
        life.postpone(task, max(due, life.now + usual))


def ack_many(life: Life, request: AckTasks) -> AckTasksReply:
    problems: dict[int, Refusal] = {}
    results = dict(request.results)
    if not all(has_content(life, result) for result in results.values()):
        return Outcome.LOST
    for place, (id, call) in enumerate(request.tasks):
        task = held(life, id, request.owner, call)
        if isinstance(task, Living):
            life.process(task, None, None)
            if place in results:
                life.results.say(id, results[place], True)
        else:
            problems[place] = OtherOwner("") if isinstance(task, OtherOwner) else task
    return problems


def change(life: Life, request: ChangeTask) -> ChangeTaskReply:
    task = life.tasks.get(request.id)
    if task is None:
        return Outcome.ABSENT
    state, to, tube = task.record.state, request.to, request.tube
    if state not in request.origins:
        return OtherState(state)
    if not _change_data(task, request.edit):
        return Outcome.CHANGED
    if state == states.BURIED and to in (states.READY, states.WAITING):
        task.record = task.record._replace(deliveries=0)
    if not to and state == states.TAKEN:
        to = states.READY
    if not to:
        life.shift(task, tube or "")
    elif to == states.VOID:
        life.vanish(task, "killed")
    elif to in (states.READY, states.WAITING):
        life.revive(task, request.delay, request.ttl, tube)
    else:
        zombie = request.delay or life.settings.zombie
        ends = life.zombie_until(zombie) if to == states.ZOMBIE else 0
        life.turn(task, to, ends, tube)
        if to != states.BURIED:
            life.conclude(task, "processed", state)
    return task.stored()


def _change_data(task: Living, edit: Edit | None) -> bool:
    """Change the data, unless it is no longer what the new data was made of."""
    if edit is None:
        return True
    if edit.made_of is not None and edit.made_of != task.data:
        return False
    task.data = edit.data
    return True
