"""The pages of the workers, and of the pipeline that they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...administration.rates import Key, QueueRates
from ..markup import Child, Markup, element
from ..monitor import View
from ..survey import MOST_QUEUES, Survey, Use, in_order
from . import layout
from .layout import ALIVE, NOTHING, Context, duration, number, queue_link, rate
from .listing import bottleneck, depth, summary

_WORKER_HEADS = ["Process", "Alive", "Puts into", "Gets from", "Works on"]
_STAGE_HEADS = ["Queue", "Depth", "In/s", "Out/s", "Goes on to", "Consumers", "Why"]
#: The most queues that are named in a cell.
_MOST_SHOWN = 6


def make_workers(context: Context) -> str:
    survey = context.monitor.survey()
    rows = [
        layout.row(
            _WORKER_HEADS,
            [
                layout.process(worker.id, worker.host, worker.pid),
                ALIVE[worker.alive],
                *(
                    _some([_use(use) for use in worker.uses if use.role == role])
                    for role in ("producer", "consumer", "worker")
                ),
            ],
            "gone" if worker.alive is False else None,
        )
        for worker in survey.workers
    ]
    note = "The processes that a queue knows: that wait, that last put and got, that have tasks."
    return layout.page(
        context,
        "Workers",
        element("h1", "Workers"),
        layout.live(
            "workers",
            element("p", note, " ", _left_out(survey), class_="note"),
            layout.table(_WORKER_HEADS, rows, "No process is known to use a queue."),
        ),
        here="workers",
    )


def _some(found: Sequence[Child]) -> Child:
    """Show the first of them, and how many more there are."""
    if not found:
        return NOTHING
    more = len(found) - _MOST_SHOWN
    shown = [element("li", one) for one in found[:_MOST_SHOWN]]
    return element("ul", shown, element("li", f"and {more} more") if more > 0 else None)


def _use(use: Use) -> list[Child]:
    waits = f" has waited {duration(use.waited)}" if use.waited is not None else ""
    tasks = f" has {number(use.tasks)}" if use.tasks else ""
    return [queue_link(use.queue), waits, tasks, at_work(use.worker) if use.worker else None]


def at_work(worker: dict[str, Any]) -> Child:
    """Say what a worker is and is at."""
    if worker["concurrency"] is None:
        return element("span", ", taken without run()", class_="note")
    tubes = ", ".join("all tubes" if tube is None else tube for tube in worker["tubes"])
    said = f"for {duration(worker['works'])}, {worker['concurrency']} at a time of {tubes}"
    return element("div", said, f", version {worker['version']}", class_="note")


def make_pipeline(context: Context) -> str:
    """Make the page of the queues that lead to further queues, with the slow ones."""
    view, survey = context.monitor.view(), context.monitor.survey()
    known = [key for key in survey.sentences if key in view.queues]
    in_use = [key for key in known if _is_in_use(view.queues[key], key, survey)]
    at_rest = len(view.queues) - len(in_use) - survey.left_out
    rest = f"{number(at_rest)} at rest are not shown." if at_rest > 0 else ""
    stages = in_order(in_use, survey.leads_to)
    rows = [_stage(view.queues[key], key, view, survey) for key in stages]
    verdict: Child = bottleneck(view)
    if verdict is None and not view.error:
        verdict = element(
            "p", "No queue has consumers that are too slow for the others.", class_="sentence"
        )
    return layout.page(
        context,
        "Pipeline",
        element("h1", "Pipeline"),
        layout.live(
            "pipeline",
            summary(view) if view.error else None,
            verdict,
            layout.table(_STAGE_HEADS, rows, "No queue is in use.", class_="stages"),
            element("p", rest, " ", _left_out(survey), class_="note"),
        ),
        here="pipeline",
    )


def _is_in_use(one: QueueRates, key: Key, survey: Survey) -> bool:
    """Tell whether a queue is in use: items come or go, clients wait, or it leads to another."""
    queue = one.queue
    is_linked = key in survey.leads_to or any(key in some for some in survey.leads_to.values())
    return is_linked or bool(
        one.puts or one.gets or queue.putting or queue.getting or queue.in_flight
    )


def _stage(one: QueueRates, key: Key, view: View, survey: Survey) -> Markup:
    queue = one.queue
    consumers = [
        worker
        for worker in survey.workers
        if any(use.queue == key and use.role != "producer" for use in worker.uses)
    ]
    gone = sum(worker.alive is False for worker in consumers)
    ended = f" ({gone} ended)" if gone else ""
    targets = _some([queue_link(target) for target in survey.leads_to.get(key, ())])
    bound = f" of {number(queue.maxsize)}" if queue.maxsize else ""
    return layout.row(
        _STAGE_HEADS,
        [
            queue_link(key),
            depth(queue, bound),
            rate(one.puts),
            rate(one.gets),
            targets,
            f"{len(consumers)}{ended}",
            layout.with_commands(survey.sentences[key]),
        ],
        "slow" if queue.name in view.slow else None,
    )


def _left_out(survey: Survey) -> str:
    if not survey.left_out:
        return ""
    return (
        f"Only the {MOST_QUEUES} queues where the most happens are asked; "
        f"{number(survey.left_out)} are left out."
    )
