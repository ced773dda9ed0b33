"""Find what loses data at a broker, or holds its queues up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..effects import Operation
from ..encoding.display import content_of
from ..engines.contract.brokers import Damage, QueueSummary
from ..engines.contract.items import OWNER_OF_MISSING
from ..engines.contract.queues import ANONYMOUS, How
from ..engines.contract.task_records import LOST_DATA
from ..exceptions import IncompleteQueueError, PressureError, QueueDoesNotExistError
from ..identity.client import is_gone
from ..identity.processes import incarnation, is_lost, state
from ..operations.brokers import examine_server, find_damaged
from ..operations.control import FIFO
from ..operations.diagnosis import Diagnosis
from ..operations.phrases import are, some
from ..operations.task_leases import TaskLeaseOperations
from ..operations.task_queue import TASKS
from .broker import Broker, Named
from .repair import return_lost

#: How many items of a signed queue, and tasks of each state, are looked at.
_FEW = 20
#: How often a queue is looked at if its tasks change their states meanwhile.
_TRIES = 5


@dataclass
class Trouble:
    """A fault: what it is, what to do, and where it is. ``fix`` does that, where it is safe."""

    problem: str
    advice: str
    loses: bool = False
    fix: Callable[[], object] | None = field(default=None, repr=False)
    subject: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "problem": self.problem,
            "advice": self.advice,
            "loses_data": self.loses,
            "fixable": self.fix is not None,
        }


def find_troubles(broker: Broker) -> Iterator[Trouble]:
    """Find all troubles: at the server first, then in each queue."""
    for finding in broker.run(examine_server()):
        subject, value, problem, advice, loses = finding
        yield Trouble(problem, advice, loses, subject=f"{subject} is {value}")
    damaged = {name: one for page in broker.each_page(find_damaged) for name, one in page.queues}
    for name in sorted(damaged):
        discipline = TASKS if damaged[name] is Damage.INCOMPLETE else FIFO
        yield _of_damage(broker.named(name, discipline), damaged[name])
    for page in broker.pages():
        for summary in page:
            if summary.name in damaged:
                continue  # a look at it would fail, or remove keys that are not its own
            queue = broker.named(summary.name, summary.discipline)
            try:
                for trouble in _of_queue(queue, summary):
                    trouble.subject = trouble.subject or f"queue {queue.name!r}"
                    yield trouble
            except QueueDoesNotExistError:
                continue  # the queue was deleted meanwhile
            except PressureError as error:
                yield Trouble(
                    f"It cannot be read: {error}.",
                    f"`pressure-mp delete {queue.name}` removes it, with what it still has.",
                    loses=isinstance(error, IncompleteQueueError),
                    subject=f"queue {queue.name!r}",
                )


def _of_damage(queue: Named, damage: Damage) -> Trouble:
    problem, advice, fix = _DAMAGES[damage]
    return Trouble(
        problem,
        advice.format(name=queue.name),
        damage not in (Damage.OF_ANOTHER, Damage.NO_SIGN),
        fix and partial(fix, queue),
        f"queue {queue.name!r}",
    )


def _of_counters(queue: Named) -> Iterator[Trouble]:
    """Find items that were put, and neither were got nor are queued. Items that a shutdown dropped
    are not counted. A client of another implementation counts a moment later than it puts: so a
    second look must find the same."""
    for _ in range(2):
        stats = queue.stats()
        lost = stats.produced_messages - stats.consumed_messages - stats.length
        if not lost or stats.closed:
            return
    put = f"{stats.produced_messages} items were put into it"
    there = f"{stats.consumed_messages} were got and {stats.length} are queued"
    yield Trouble(
        f"{put}, {there}: the server or another program removed "
        f"{'items, or a counter' if lost > 0 else 'a counter'}.",
        "doctor cannot know what is missing. Counters are for totals and rates only; to have right "
        "ones, move the items to a new queue and delete this one.",
        loses=lost > 0,
    )


def _of_queue(queue: Named, summary: QueueSummary) -> Iterator[Trouble]:
    if queue.name.startswith(ANONYMOUS):
        yield from _of_users(queue)
    if queue.has_tasks:
        yield from _of_takers(queue)
        yield from _of_lost_tasks(queue)
    else:
        found = queue.run(queue.items.why_blocked())
        yield from _of_roles(queue, found)
        yield from _of_counters(queue)
        yield from _of_owners(queue)
        if found.damage:
            yield _of_damage(queue, Damage(found.damage))
        if found.damage != Damage.NO_CONTENTS.value:
            yield from _of_signatures(queue)
    if summary.rejected:
        kept = "buried" if queue.has_tasks else "set aside"
        show = "tasks" if queue.has_tasks else "peek --rejected"
        yield Trouble(
            f"{are(summary.rejected, 'task' if queue.has_tasks else 'item')} {kept}.",
            f"See `pressure-mp {show} {queue.name}`; then `pressure-mp requeue` or `drop`.",
        )


def _of_roles(queue: Named, found: Diagnosis) -> Iterator[Trouble]:
    for side in (found.put, found.get):
        state = side.holder.state if side.holder else ""
        command = f"`pressure-mp unlock {queue.name} {side.role}`"
        if state == "lost":
            yield Trouble(
                f"The key that lets a client {side.operation} is missing: the server or another "
                "program removed keys of the queue, and items may be missing too.",
                f"{command}.",
                loses=True,
            )
        elif state == "foreign":
            yield Trouble(
                f"The {side.role} role is with a client of another implementation, or with a dead "
                "client.",
                f"{command}, if you know that it is dead.",
            )


def _of_owners(queue: Named) -> Iterator[Trouble]:
    """Find processes that have items in flight, or produce, and have ended, or let their leases
    end."""
    items = queue.items
    there = queue.run(items.renew(incarnation(), False, False))
    # A process stays noted for a while after it has acknowledged all its items.
    consumers = there.consumers if queue.stats().in_flight else {}
    for owners, problem, advice, mend in (
        (
            consumers,
            "Items that process {} took are in flight, and {}.",
            "They go back when a consumer waits for an item; --fix gives them back now.",
            items.requeue,
        ),
        (
            there.producers,
            "Process {} counts as a producer, and {}.",
            "It no longer counts when a consumer waits for an item; --fix does this now.",
            items.retire,
        ),
    ):
        for owner, until in owners.items():
            seen = state(owner)
            if is_lost(seen, until, there.now):
                ended = "the process has ended" if seen == "dead" else "its lease has ended"
                fix = partial(_run, queue, mend, owner, until)
                yield Trouble(problem.format(owner, ended), advice, fix=fix)


def _of_takers(queue: Named) -> Iterator[Trouble]:
    operations = TaskLeaseOperations(queue.name)
    leases = queue.run(operations.renew(incarnation(), False)).leases
    found = queue.run(queue.tasks.why_blocked())
    if found.late:
        problem, _, advice = found.too_slow.partition(": ")
        yield Trouble(f"{problem}.", f"{advice.capitalize()}")
    for taker in found.takers:
        if taker.tasks and taker.lost:
            has_ended = taker.peer.alive is False
            lease = "" if has_ended else ", and its lease has ended"
            error = f"its worker {'has ended' if has_ended else 'let its lease end'}"
            seen = leases.get(taker.peer.id)
            yield Trouble(
                f"{taker.peer} has {some(taker.tasks, 'task')}{lease}.",
                "They are ready again when a worker waits; --fix gives them back now.",
                fix=partial(_run, queue, operations.requeue, taker.peer.id, error, seen),
            )


def _of_lost_tasks(queue: Named) -> Iterator[Trouble]:
    """Find tasks that are counted and not there, or whose keys are gone. It is certain only if no
    task changed its state between the count and the look."""
    for _ in range(_TRIES):
        stats = queue.run(queue.tasks.stats())
        seen = {state: queue.run(queue.tasks.list(state, "", _FEW)) for state in stats.counts}
        differ = any(len(tasks) != min(stats.counts[state], _FEW) for state, tasks in seen.items())
        if not differ or queue.run(queue.tasks.stats()).transitions == stats.transitions:
            break
    else:
        differ = False  # workers are at work
    if any(task.data is LOST_DATA for tasks in seen.values() for task in tasks):
        yield Trouble(
            "The data of tasks are missing: the server or another program removed them.",
            "A worker that takes one raises IncompleteQueueError, and the task is buried. "
            f"`pressure-mp drop {queue.name}` removes it then; put it again by the program that "
            "made it.",
            loses=True,
        )
    elif differ:
        yield Trouble(
            "It does not have the tasks that are counted: the server or another program removed "
            "keys of the queue.",
            "--fix finds and counts the tasks whose data are there. The others cannot be known "
            "here: put them again by the program that made them.",
            loses=True,
            fix=partial(_mend_tasks, queue),
        )


def _count_lost_as_done(queue: Named) -> None:
    """Count the items of ended processes that are no longer in flight as done."""
    return_lost(queue)
    queue.run(queue.items.requeue(OWNER_OF_MISSING))


def _mend_tasks(queue: Named) -> None:
    """Rebuild the keys in which tasks are looked for and counted."""
    settings = queue.run(queue.tasks.recorded())
    queue.run(queue.tasks.open(How.ATTACH, settings, mends=True))


#: For each damage: the problem, what to do, and the fix, where that is safe.
_DAMAGES: dict[Damage, tuple[str, str, Callable[[Named], object] | None]] = {
    Damage.NO_BOUND: (
        "Its bound is missing: clients are told that there is no such queue. The server or "
        "another program removed keys of it, and items may be missing too.",
        "Open it with the bound that it had, in a program with its own class, or, if that is "
        "Queue, by `pressure-mp put {name} --maxsize N </dev/null`. It has its items then.",
        None,
    ),
    Damage.NO_SETTINGS: (
        "Its settings are missing, and the note that it is a queue of tasks: clients are "
        "told that there is no such queue. The server or another program removed keys of it.",
        "Open it in a program, with the options that it had: TaskQueue({name!r}, …). It has "
        "its tasks then, and is open if it was shut down. Then call doctor again.",
        None,
    ),
    Damage.NO_KIND: (
        "The key that says its discipline is missing: a program that knows only its name, as "
        "the commands of pressure-mp, is refused. The server or another program removed keys "
        "of it, and items may be missing too.",
        "Open it in a program with the class that it had: LifoQueue, PriorityQueue or "
        "FairQueue. It has its items then. Then call doctor again.",
        None,
    ),
    Damage.INCOMPLETE: (
        "Keys of this queue of tasks are missing: the server or another program removed them.",
        "--fix rebuilds them from the data of each task. Then call doctor again.",
        _mend_tasks,
    ),
    Damage.NO_CONTENTS: (
        "Items are missing whose order is there: the server or another program "
        "removed them. A get of one raises IncompleteQueueError, and it stays.",
        "The missing items cannot be known here. "
        "`pressure-mp purge {name}` empties the queue, with the items that are still there, "
        "and it can be used again: put all of them again by the program that made them.",
        None,
    ),
    Damage.NONE_IN_FLIGHT: (
        "Items were taken that are neither in flight nor acknowledged: the server or another "
        "program removed them. If the process that has them ends, they do not come back, and "
        "join() waits without end.",
        "A living process can still acknowledge the items that it has. --fix counts the "
        "others as done, so that join() returns: put these again by the program that made them.",
        _count_lost_as_done,
    ),
    Damage.OF_ANOTHER: (
        "The data beside its items (items set aside or in flight, contents of large items) may "
        "belong to another queue: a client of another implementation deleted a queue of this "
        "name and created this one, or its keys were copied without their times to live.",
        "If its keys were copied, copy them again with their times to live. Else nothing needs "
        "to be done: the next client that reads these data removes them first; --fix does it "
        "now. Then doctor can look at the rest of the queue.",
        Named.stats,
    ),
    Damage.NO_SIGN: (
        "The key that says that there is space is missing: the server or another program removed "
        "it, or a producer ended that had just taken it. Producers of other implementations wait "
        "for it.",
        "The next put of this package puts it back; --fix does it now.",
        lambda queue: queue.run(queue.items.unlock("producer")),
    ),
}


def _run(queue: Named, make: Callable[..., Operation[Any]], *args: Any) -> None:
    queue.run(make(*args))


def _of_users(queue: Named) -> Iterator[Trouble]:
    users = queue.run(queue.operations.users())
    gone = [user for user in users if is_gone(user)]
    subject = f"anonymous queue {queue.name!r}"
    if users and len(gone) == len(users):
        yield Trouble(
            "All processes that used it have ended.",
            "The next program of this host that makes a queue removes it; --fix does it now.",
            fix=partial(_run, queue, queue.operations.dismiss, gone),
            subject=subject,
        )
    elif users and all(is_gone(user) is None for user in users):
        hosts = sorted({user.partition("/")[0].rpartition("-")[0] for user in users})
        yield Trouble(
            f"Only processes of {', '.join(hosts)} use it; whether they live is known only there.",
            f"If that machine is gone: `pressure-mp gc --host {hosts[0]}`.",
            subject=subject,
        )


def _of_signatures(queue: Named) -> Iterator[Trouble]:
    contents = [content_of(item) for item in queue.run(queue.items.peek_items(_FEW))]
    unsigned = [one for one in contents if one.key is None and one.kind != "large"]
    if unsigned and len(unsigned) < len(contents) and any(one.key for one in contents):
        verb = "is" if len(unsigned) == 1 else "are"
        yield Trouble(
            f"Of its next {len(contents)} items, {len(unsigned)} {verb} not signed, and the others "
            "are.",
            "Give every producer the key (authkey= or PRESSURE_AUTHKEY); consumers with the key "
            "set these items aside.",
        )
