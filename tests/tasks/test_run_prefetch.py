"""A run that prefetches: what it takes ahead, when it acknowledges, and what becomes of tasks that
no worker begins."""

from __future__ import annotations

import threading
import time

from waiting import LIMIT, until

from pressure_mp.background.takers import Takers
from pressure_mp.handles.task_verbs import TaskVerbs
from pressure_mp.sync.tasks import dispatch
from pressure_mp.sync.tasks.dispatch import MOMENT


def counted(monkeypatch, method):
    calls, made = [], getattr(TaskVerbs, method)

    def note(*args, **options):
        calls.append(args)
        return made(*args, **options)

    monkeypatch.setattr(TaskVerbs, method, note)
    return calls


def test_many_tasks_are_taken_and_acknowledged_in_few_calls(queue, run, monkeypatch):
    takes = counted(monkeypatch, "_take_for_run")
    acknowledgements = counted(monkeypatch, "_acknowledge_for_run")
    monkeypatch.setattr(dispatch, "MOMENT", LIMIT)
    seen, in_hand = [], []

    def handler(task):
        seen.append(task.data)
        if task.data % 10 == 0:
            in_hand.append(queue.stats().counts["T"])

    queue.put_many(range(200))
    queue.shutdown()
    run(handler, prefetch=39)
    assert seen == list(range(200))
    assert 20 < max(in_hand) <= 40
    assert len(takes) < 20
    assert len(acknowledgements) < 40
    assert queue.stats().transitions["T-X"] == 200


def test_a_task_is_acknowledged_before_the_next_begins_if_it_took_long(queue, run):
    seen = []

    def handler(task):
        seen.append(queue.stats().transitions.get("T-X", 0))
        time.sleep(2 * MOMENT)

    queue.put_many("abcd")
    queue.shutdown()
    run(handler, prefetch=8)
    assert seen == [0, 1, 2, 3]


def test_tasks_that_no_worker_began_are_released_when_the_run_ends(queue, run):
    begun, go_on, late = threading.Event(), threading.Event(), threading.Event()

    def handler(task):
        begun.set()
        go_on.wait(LIMIT)
        late.set()

    queue.put_many("abcd")
    run(handler, stop=begun, prefetch=8, grace=0.05)
    assert queue.stats().counts["R"] == 4
    go_on.set()
    assert late.wait(LIMIT)


def test_tasks_that_no_worker_began_are_released_uncounted_as_soon_as_the_run_takes_no_more(
    queue, run
):
    stop = threading.Event()

    def handler(task):
        stop.set()
        until(lambda: queue.stats().counts["R"] == 3)

    queue.put_many("abcd")
    run(handler, stop=stop, prefetch=8)
    assert [(task.data, task.deliveries) for task in queue.list("ready")] == [
        ("b", 0),
        ("c", 0),
        ("d", 0),
    ]


def test_a_task_that_another_process_removes_before_its_turn_is_not_begun_and_not_counted(
    queue, run, monkeypatch, caplog
):
    caplog.set_level("INFO", "pressure_mp")
    lost, seen, tell_lost = threading.Event(), [], Takers._tell_lost
    monkeypatch.setattr(Takers, "note_removed", lambda takers, task: None)

    def tell_and_say_so(takers, task, why):
        tell_lost(takers, task, why)
        lost.set()

    monkeypatch.setattr(Takers, "_tell_lost", tell_and_say_so)
    ids = queue.put_many("abcd")

    def handler(task):
        seen.append(task.data)
        if task.data == "a":
            queue.cancel(ids[1])
            assert lost.wait(LIMIT)

    run(handler, prefetch=8, max_tasks=2)
    assert seen == ["a", "c"]
    assert "before a worker had time" in caplog.text


def test_a_task_whose_ttr_is_over_before_a_worker_has_time_is_left_to_others(queue, run, caplog):
    seen = []

    def handler(task):
        seen.append((task.data, task.deliveries))
        if task.data == "a":
            queue.touch(task.id, 3600)
            until(lambda: queue.stats().counts["R"] == 1)
            time.sleep(0.1)  # the run counts from when the reply came

    queue.put_many("ab")
    queue.shutdown()
    run(handler, prefetch=8, ttr=0.3)
    assert seen == [("a", 1), ("b", 2)]
    assert "before a worker had time" in caplog.text
