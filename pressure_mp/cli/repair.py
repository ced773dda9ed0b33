"""The commands that repair and change queues: unlock, requeue, drop, purge, drain, shutdown,
delete."""

from __future__ import annotations

import sys

import click

from ..administration import repair
from ..encoding import reports
from ..encoding.display import content_of
from ..encoding.task_values import encode_id
from ..exceptions import QueueDoesNotExistError, TaskNotFound
from ..operations.phrases import are, some
from ..states import READY, TAKEN, WAITING
from . import statuses
from .broker import Broker, Named, with_broker, with_queue
from .completion import queue_name
from .output import as_json, seconds, turns, write_count, write_json

yes = click.option("--yes", is_flag=True, help="Do not ask whether you are sure.")
time_limit = seconds(
    "--timeout",
    "How long to wait while a client of another implementation of the protocol uses the "
    "queue; then end with status 3.",
    default=5.0,
)
#: Seconds between two checks whether all is done.
_INTERVAL = 0.2


def confirm(question: str, is_sure: bool) -> None:
    """Ask, unless the command line has the answer. Ends the command unless the answer is yes;
    without a terminal there is no answer."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{question} There is no terminal to ask at: if you are sure, add --yes"
        )
    try:
        answer = click.confirm(question)
    except click.Abort as error:  # click's word for Ctrl-C and for the end of the input
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        answer = False
    if not answer:
        raise click.ClickException("nothing was removed")


@with_queue
@click.argument("role", type=click.Choice(["producer", "consumer"]))
@as_json
def unlock(queue: Named, role: str, in_json: bool) -> None:
    """Take the ROLE producer or consumer of the queue NAME from a dead client.

    This is for a dead client of another implementation of the protocol: it keeps its role for
    ever otherwise. Make sure that it is dead: a live client goes on as if it still had the role.
    The roles of this package's own clients end by themselves.
    """
    holder = queue.run(queue.items.unlock(role))
    if in_json:
        write_json({"role": role, "taken_from": holder})
    else:
        click.echo(f"The {role} role was free." if holder is None else f"Taken from {holder}.")


ids = click.argument("ids", nargs=-1, metavar="[ID]...")
everything = click.option(
    "--all", "everything", is_flag=True, help="All items or tasks that were set aside."
)
match = click.option(
    "--match", metavar="TEXT", help="Only items whose content, or tasks whose error, contains TEXT."
)


@with_queue
@ids
@everything
@match
@as_json
def requeue(
    queue: Named, ids: tuple[str, ...], everything: bool, match: str | None, in_json: bool
) -> None:
    """Put the items that were set aside back into the queue NAME, or make buried tasks ready.

    State IDs, --match or --all. An ID is a task's id; or, in a queue of items, the number of an
    item as `peek --rejected` lists them, 1 for the oldest. Items go to the end of the queue. For a
    priority or fair queue this is refused.
    """
    if queue.has_tasks and everything:
        number = queue.run(queue.tasks.kick_many(None, 0, None))
    else:
        number = repair.requeue_each(queue, _chosen(queue, ids, everything, match))
    write_count(number, "put back", in_json)


@with_queue
@ids
@everything
@match
@yes
@as_json
def drop(
    queue: Named,
    ids: tuple[str, ...],
    everything: bool,
    match: str | None,
    yes: bool,
    in_json: bool,
) -> None:
    """Remove the items that were set aside in the queue NAME, or its buried tasks, for good.

    State IDs, --match or --all, as for requeue.
    """
    found = _chosen(queue, ids, everything, match)
    if found:
        confirm(f"Remove {some(len(found), 'task' if queue.has_tasks else 'item')} for good?", yes)
    number = repair.drop_each(queue, found)
    write_count(number, "removed", in_json)


def _chosen(queue: Named, ids: tuple[str, ...], everything: bool, match: str | None) -> list[bytes]:
    """Return the ids of buried tasks, or the items that were set aside, that are selected."""
    if [bool(ids), everything, match is not None].count(True) != 1:
        raise click.UsageError("select with IDs, or --match TEXT, or --all")
    if queue.has_tasks:
        if ids:
            return [find_id(queue, one) for one in ids]
        return [
            task.id
            for task in repair.buried(queue)
            if match is None
            or match in reports.read(task.record.report).error
            or match in content_of(task.data).text
        ]
    items = repair.rejected(queue)
    if ids:
        try:
            return [items[int(number) - 1] for number in ids if int(number) > 0]
        except (ValueError, IndexError):
            places = f", at the places 1 to {len(items)}" if items else ""
            raise click.UsageError(
                f"there is no item at one of the places {' '.join(ids)}: "
                f"{are(len(items), 'item')} set aside{places}"
            ) from None
    return [one for one in items if match is None or match in content_of(one).text]


def find_id(queue: Named, text: str) -> bytes:
    """Return the id of the task that a command line names: 2 is the number, or a text if only that
    is there."""
    if text.isdecimal():
        number = encode_id(int(text))
        try:
            queue.run(queue.tasks.peek(number))
            return number
        except TaskNotFound:
            pass
    return encode_id(text)


@with_queue
@time_limit
@yes
@as_json
def purge(queue: Named, timeout: float, yes: bool, in_json: bool) -> None:
    """Remove all items that are queued in the queue NAME; or all tasks, in every state.

    The queue stays. Items in flight stay too. Items that are removed count as done.
    """
    confirm(f"Remove {_there(queue, in_flight=False)} from {queue.name!r}?", yes)
    write_count(repair.empty(queue, timeout), "dropped", in_json)


@with_queue
@click.option("--immediate", is_flag=True, help="Also remove the items that are queued.")
@time_limit
def shutdown(queue: Named, immediate: bool, timeout: float) -> None:
    """Shut the queue NAME down, for all clients and for good.

    Nothing more can be put. Consumers can still get the queued items; then they get ShutDown.
    """
    if queue.has_tasks and immediate:
        raise click.UsageError("--immediate is not for a queue of tasks: purge it")
    repair.shut_down(queue, timeout, immediate)


@with_broker
@queue_name("names", nargs=-1, required=True, metavar="NAME...")
@time_limit
@yes
def delete(names: tuple[str, ...], timeout: float, yes: bool, broker: Broker) -> None:
    """Remove the queues NAME, with all their items or tasks, for all clients and for good.

    Exit status 4: one of them does not exist; the others are removed.
    """
    queues, missing = [], []
    for name in names:
        try:
            queues.append(broker.find(name))
        except QueueDoesNotExistError as error:
            missing.append(error)
    if queues:
        found = ", ".join(f"{queue.name!r} ({_there(queue, in_flight=True)})" for queue in queues)
        confirm(f"Delete {found} for all clients and for good?", yes)
    for queue in queues:
        repair.remove(queue, timeout)
    for problem in missing:
        click.echo(f"Error: {problem}", err=True)
    if missing:
        sys.exit(statuses.MISSING)


def _there(queue: Named, in_flight: bool) -> str:
    """Say how many tasks a queue has, or how many items, with or without the items in flight."""
    if queue.has_tasks:
        return some(sum(queue.run(queue.tasks.stats()).counts.values()), "task")
    stats = queue.stats()
    return some(stats.length + (stats.in_flight if in_flight else 0), "item")


@with_queue
@seconds("--timeout", "How long to wait. Without it, wait without limit.")
@as_json
def drain(queue: Named, timeout: float | None, in_json: bool) -> None:
    """Shut the queue NAME down, for good, and wait until its work is done.

    That is: no item is queued or in flight; in a queue of tasks, no task is ready, waiting or
    taken. Exit status 3: something was left when the time was up.
    """
    click.echo(f"Shutting {queue.name!r} down for good: nothing more can be put.", err=True)
    repair.shut_down(queue, timeout)
    left = 0

    def are_left() -> str:
        return f"{are(left, 'task' if queue.has_tasks else 'item')} left"

    for _ in turns(_INTERVAL, timeout, lambda: f"{are_left()}: waiting for the consumers."):
        left = _left(queue)
        if not left:
            break
    if in_json:
        write_json({"done": not left, "left": left})
    elif left:
        click.echo(f"{are_left()}.", err=True)
    if left:
        sys.exit(statuses.TIME_IS_UP)


def _left(queue: Named) -> int:
    """Return how many are still to be dealt with."""
    try:
        if queue.has_tasks:
            counts = queue.run(queue.tasks.stats()).counts
            return sum(counts[state] for state in (READY, WAITING, TAKEN))
        stats = queue.stats()
    except QueueDoesNotExistError:
        return 0  # the client that got the last item deleted it
    return stats.length + stats.in_flight
