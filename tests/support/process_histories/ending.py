"""The end of a history: all actors go on, flush, get and acknowledge all items, and end."""

from __future__ import annotations

import time

from process_histories.actors import HANG, Actor, Broken
from process_histories.conducting import LIMIT, SHORT, Conductor
from process_histories.model import Queue


def end(history: Conductor) -> None:
    actors = history.actors
    for process in actors.stopped:
        history.go(process.actors[0])
    _free_all(history)
    for name, queue in history.queues.items():
        _get_all(history, name, queue)
    for other in actors.idle():
        actors.ask(other, "flush")
        for queue in history.queues.values():
            queue.settle(other.name)
    for other in actors.idle():
        history.acknowledge(other)
    for name, queue in history.queues.items():
        _get_rest(history, name, queue)
    for name, queue in history.queues.items():
        _check_empty(history, name, queue)
    for queue in history.queues.values():
        problems = list(queue.problems())
        if problems:
            raise Broken("\n".join(problems[:10]))
    for actor in reversed(list(actors)):
        _end_with_children(history, actor)


def _free_all(history: Conductor) -> None:
    """Until no call waits: items are got where there is no space, and put where there are none."""
    deadline = time.monotonic() + HANG
    while True:
        history.actors.collect_all()
        busy = [actor for actor in history.actors if actor.is_busy]
        if not busy:
            return
        if time.monotonic() > deadline:
            history.actors.show_stacks(busy)
            raise Broken(f"these calls do not end: {[(one.name, one.call) for one in busy]}")
        for actor in busy:
            if actor.call is not None:
                _free(history, actor, *actor.call)


def _free(history: Conductor, busy: Actor, verb: str, name: str, _: int) -> None:
    other = next(history.actors.idle(name, busy), None)
    if other is None:
        raise Broken(f"no actor is left to free {busy.name} from {verb} {name}")
    queue = history.queues[name]
    if verb == "put":
        history.get(other, name, "1")
    elif queue.certain(history.actors.working) <= 0 and not queue.shut_down:
        known = len(queue.operations)
        item = history.items(other, name, 1)
        history.actors.ask(other, "put", name, item, "small", SHORT)
        deadline = time.monotonic() + LIMIT
        while len(queue.operations) == known and time.monotonic() < deadline:
            history.actors.collect_all()
            time.sleep(0.001)
    else:
        time.sleep(0.002)


def _get_all(history: Conductor, name: str, queue: Queue) -> None:
    """Get all items that are there for certain: then items that wait to be sent have space."""
    actor = _reader(history, name)
    while queue.certain(history.actors.working) > 0:
        history.get(actor, name, "1")
        if queue.shut_down and not actor.last_got:
            break


def _reader(history: Conductor, name: str) -> Actor:
    """An actor that sees the items for certain, if there is one."""
    idle = list(history.actors.idle(name))
    return next((one for one in idle if not history.may_be_blind(one, name)), idle[0])


def _get_rest(history: Conductor, name: str, queue: Queue) -> None:
    """Get the items that come back, and the items that may have been put."""
    actor = _reader(history, name)
    deadline = time.monotonic() + LIMIT
    while True:
        waits = queue.lacks() and time.monotonic() < deadline
        history.actors.ask(actor, "get", name, 1, 1.0 if waits else SHORT, number=1)
        history.acknowledge(actor)
        if not waits and not actor.last_got and _is_empty(history, actor, name, deadline):
            break
    if queue.lacks():
        missing = queue.missing()
        raise Broken(f"{len(missing)} items of {name} are lost: {missing[:10]}")


def _is_empty(history: Conductor, actor: Actor, name: str, deadline: float) -> bool:
    """Whether it is empty; the items of a killed process may still be on their way back."""
    found = history.actors.ask(actor, "count", name)
    if found is None or time.monotonic() > deadline:
        return True
    return not found["qsize"] and not found.get("unfinished")


def _check_empty(history: Conductor, name: str, queue: Queue) -> None:
    actor = _reader(history, name)
    found = history.actors.ask(actor, "count", name)
    if found is None or queue.shut_down:
        return
    if found["qsize"] or found.get("unfinished") or not found.get("empty", True):
        raise Broken(f"{name} is not empty in the end: {found}")
    if queue.kind.endswith("JoinableQueue"):
        history.actors.ask(actor, "join", name)


def _end_with_children(history: Conductor, actor: Actor) -> None:
    """A process waits for the processes that it started; a thread too ends before its process."""
    if not actor.is_alive:
        return
    if actor.is_main:
        children = [one for one in history.actors.processes if one.parent is actor.process]
        for one in [*actor.process.actors[1:], *(child.actors[0] for child in children)]:
            _end_with_children(history, one)
    history.end(actor)
