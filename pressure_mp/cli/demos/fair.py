"""``pressure-mp demo fair``: one tenant has put very many jobs; how long do the others wait?"""

from __future__ import annotations

import statistics

import click

from ... import FairQueue, Queue
from . import stages
from .pipeline import broker_url
from .processes import Processes

HOG, SMALL = "hog", ("alice", "bob", "carol")
SMALL_JOBS = 10
#: Seconds that a job takes.
WORK = 0.002
#: Characters of the longest bar.
WIDTH = 40


@click.command()
@broker_url
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=300,
    help="How many jobs the tenant with very many jobs has.",
)
def fair(url: str, jobs: int) -> None:
    """Show that a tenant with very many jobs does not keep the others waiting.

    All jobs go first through a Queue, then through a FairQueue. The plot shows for each tenant the
    median time from the start of the work until a job is done.
    """
    click.echo(
        f"The tenant {HOG!r} has put {jobs} jobs; {', '.join(SMALL)} put {SMALL_JOBS} each. "
        f"A job takes {WORK * 1000:.0f} ms."
    )
    plain = run(Queue(url=url), url, jobs)
    just = run(FairQueue(stages.tenant, None, url=url), url, jobs)
    rows = []
    for name in (HOG, *SMALL):
        rows.append((name, "Queue", statistics.median(plain[name])))
        rows.append(("", "FairQueue", statistics.median(just[name])))
    longest = max(value for _, _, value in rows)
    for title, kind, value in rows:
        bar = "█" * max(round(WIDTH * value / longest), 1)
        click.echo(f"{title:8} {kind:9} {bar} {value * 1000:.0f} ms")


def run(queue: Queue[stages.Job], url: str, jobs: int) -> stages.Delays:
    """Measure the delays of all tenants' jobs through that queue. Raises ProcessFailed."""
    processes = Processes()
    with queue, Queue[stages.Delays](1, url=url) as reports:
        stages.submit(queue, HOG, jobs)
        number = jobs + len(SMALL) * SMALL_JOBS
        processes.add("working", stages.work, queue, reports, number, WORK)
        for name in SMALL:
            processes.add(name, stages.submit, queue, name, SMALL_JOBS)
        with processes.at_work():
            delays: stages.Delays = processes.wait_for(reports, lambda: None)
    return delays
