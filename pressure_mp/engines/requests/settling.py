"""Requests that settle one task, and the changes of administrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ... import states
from ..contract.replies import Lost, Outcome
from ..contract.task_administration import ChangeTask, ChangeTaskReply
from ..contract.task_records import Edit, HeldTask
from ..contract.task_results import Result
from ..contract.tasks import (
    AcknowledgedTasks,
    AckTask,
    AckTasks,
    AckTasksReply,
    BuryTask,
    OtherOwner,
    OtherState,
    Processed,
    Refusal,
    ReleaseTask,
    SettledReply,
    TouchTask,
)
from .dispatch import for_tasks
from .life import OUTCOMES, Life, Living
from .line import Caller


def held(life: Life, id: bytes, owner: str, call: int) -> Living | Refusal:
    """Return the task, if the owner has it by that take."""
    task = life.tasks.get(id)
    if task is None:
        return Outcome.ABSENT
    if task.record.state != states.TAKEN:
        return OtherState(task.record.state)
    if (task.record.owner, task.record.call) != (owner, call):
        return OtherOwner(task.record.owner)
    return task


def has_content(life: Life, result: Result) -> bool:
    """Tell whether the content of a result exists, if it needs one."""
    return not result.token or life.results.contents.is_kept(result.token)


def may_settle(life: Life, request: AckTask | ReleaseTask) -> bool:
    """Tell whether the request would settle the task."""
    task = held(life, request.id, request.owner, request.call)
    return isinstance(task, Living) and has_content(life, request.result)


@for_tasks.does(AckTask)
def ack(life: Life, request: AckTask, caller: Caller) -> SettledReply:
    return _settle(life, request, lambda task: life.process(task, request.delay, request.tube))


@for_tasks.does(ReleaseTask)
def release(life: Life, request: ReleaseTask, caller: Caller) -> SettledReply:
    def give_back(task: Living) -> None:
        if request.priority is not None:
            task.record = task.record._replace(priority=request.priority)
        if request.unbegun:
            task.record = task.record._replace(deliveries=task.record.deliveries - 1)
        life.give_back(task, request.report, request.delay, request.ttl, request.tube)

    return _settle(life, request, give_back)


@for_tasks.does(BuryTask)
def bury(life: Life, request: BuryTask, caller: Caller) -> SettledReply:
    def put_aside(task: Living) -> None:
        if request.report:
            task.record = task.record._replace(report=request.report)
        ends = life.now + request.ttl if request.ttl else 0
        life.turn(task, states.BURIED, ends, request.tube)

    return _settle(life, request, put_aside)


def _settle(
    life: Life, request: AckTask | ReleaseTask | BuryTask, change: Callable[[Living], None]
) -> SettledReply:
    task = held(life, request.id, request.owner, request.call)
    if not isinstance(task, Living):
        return task
    if not has_content(life, request.result):
        return Outcome.LOST
    if not _change_data(task, request.edit):
        return Outcome.CHANGED
    change(task)
    is_over = task.record.state in (*OUTCOMES, states.VOID)
    life.results.say(task.id, request.result, is_over)
    return task.stored(request.whole)


@for_tasks.does(TouchTask)
def touch(life: Life, request: TouchTask, caller: Caller) -> SettledReply:
    may_be_ready = request.call == 0 and not request.report
    ready = life.tasks.get(request.id) if may_be_ready else None
    if ready is not None and ready.record.state == states.READY:
        task: Living | Refusal = ready
    else:
        task = held(life, request.id, request.owner, request.call)
    if not isinstance(task, Living):
        return task
    if not _change_data(task, request.edit):
        return Outcome.CHANGED
    due = task.record.due
    if due and request.increment is not None:
        life.postpone(task, due + request.increment)
    elif due:
        is_taken = task.record.state == states.TAKEN
        usual = life.settings.ttr if is_taken else life.settings.ttl
        life.postpone(task, max(due, life.now + usual))
    if request.report:
        life.report_progress(task, request.report)
    return task.stored(request.whole)


@for_tasks.does(AckTasks)
def ack_many(life: Life, request: AckTasks, caller: Caller) -> AckTasksReply:
    problems = acknowledge(life, request.owner, request.tasks, dict(request.results))
    if problems is Outcome.LOST:
        return problems
    return AcknowledgedTasks(processed_now(life), problems)


def processed_now(life: Life) -> Processed:
    """Return what the tasks are that are acknowledged now."""
    state, settings = life.settings.processed, life.settings
    ends = life.zombie_until(settings.zombie) if state == states.ZOMBIE else 0
    return Processed(state, life.now, ends)


def without_owners(problems: dict[int, Refusal]) -> dict[int, Refusal]:
    """Return the reasons as a request on many tasks tells them."""
    return {
        place: OtherOwner("") if isinstance(why, OtherOwner) else why
        for place, why in problems.items()
    }


def acknowledge(
    life: Life, owner: str, tasks: Sequence[HeldTask], results: Mapping[int, Result]
) -> dict[int, Refusal] | Lost:
    """Acknowledge tasks, with results by their places. Return why some are not acknowledged."""
    if not all(has_content(life, result) for result in results.values()):
        return Outcome.LOST
    problems: dict[int, Refusal] = {}
    for place, (id, call) in enumerate(tasks):
        task = held(life, id, owner, call)
        if isinstance(task, Living):
            life.process(task, None, None)
            if place in results:
                life.results.say(id, results[place], True)
        else:
            problems[place] = task
    return without_owners(problems)


@for_tasks.does(ChangeTask)
def change(life: Life, request: ChangeTask, caller: Caller) -> ChangeTaskReply:
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
    """Change the data, unless it has changed since the new data was made of it."""
    if edit is None:
        return True
    if edit.made_of is not None and edit.made_of != task.data:
        return False
    task.data = edit.data
    return True
