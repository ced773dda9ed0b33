"""The commands that look for faults: doctor, gc."""

from __future__ import annotations

import itertools
import os
import sys
import warnings

import click

from ..administration.troubles import find_troubles
from ..engines.contract.queues import ANONYMOUS
from ..exceptions import EvictionWarning, QueueDoesNotExistError
from ..identity.client import is_gone
from . import statuses
from .broker import Broker, Named, at_url, with_broker
from .output import as_json, write_count, write_json
from .repair import confirm, yes


@at_url
@click.option("--fix", is_flag=True, help="Repair what can be repaired without risk.")
@as_json
def doctor(fix: bool, in_json: bool, url: str | None, prefix: str | None) -> None:
    """Look for problems at the server and in every queue: lost data, and queues that are blocked.

    Found are server settings that lose data; missing keys of queues; roles, items and tasks of
    processes that have ended; anonymous queues without users; items that were set aside; and
    unsigned items among signed ones. --fix gives back the items and tasks of ended processes of
    this host, makes missing keys again as far as they are known, and removes anonymous queues of
    ended processes and the data of former queues. Exit status 5: something loses data.
    """
    # A server that removes keys is examined too: doctor has to report it.
    warnings.simplefilter("ignore", EvictionWarning)
    broker = Broker(url, prefix, {**os.environ, "PRESSURE_ALLOW_EVICTION": "1"})
    found, fixed, loses = 0, 0, False
    for trouble in find_troubles(broker):
        found += 1
        loses = loses or trouble.loses
        is_fixed = fix and trouble.fix is not None
        if fix and trouble.fix is not None:
            trouble.fix()
            fixed += 1
        if in_json:
            write_json({**trouble.as_json(), "fixed": is_fixed})
        else:
            done = "Done." if is_fixed else trouble.advice
            mark = "LOSES DATA" if trouble.loses else "note"
            click.echo(f"{mark}: {trouble.subject}: {trouble.problem}\n    {done}")
    if not in_json:
        click.echo(f"{found} found, {fixed} fixed." if found else "Nothing is wrong.")
    if loses:
        sys.exit(statuses.FOUND)


@with_broker
@click.option(
    "--host",
    "host_name",
    metavar="NAME",
    help="Also remove queues that only processes of the host NAME use. Make sure that this host "
    "is gone: its processes are not asked.",
)
@yes
@as_json
def gc(host_name: str | None, yes: bool, in_json: bool, broker: Broker) -> None:
    """Remove anonymous queues (made without a name) whose processes have all ended."""
    found: list[tuple[Named, list[str]]] = []
    for summary in itertools.chain.from_iterable(broker.pages()):
        if not summary.name.startswith(ANONYMOUS):
            continue
        queue = broker.named(summary.name, summary.discipline)
        try:
            users = queue.run(queue.operations.users())
        except QueueDoesNotExistError:
            continue
        gone = [user for user in users if is_gone(user) or _is_of(user, host_name)]
        if gone and len(gone) == len(users):
            found.append((queue, gone))
    if found:
        confirm(f"Remove {len(found)} anonymous queues?", yes)
    for queue, gone in found:
        queue.run(queue.operations.dismiss(gone))
    write_count(len(found), "removed", in_json)


def _is_of(user: str, host_name: str | None) -> bool:
    """Tell whether a process is of the host of that name, and it is not known whether it lives."""
    return is_gone(user) is None and user.partition("/")[0].rpartition("-")[0] == host_name
