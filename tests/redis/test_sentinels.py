"""Programs whose processes end at the first ``None`` that they get: nothing may be left, as with
multiprocessing."""

from __future__ import annotations

import pytest
from programs import sentinels as programs
from started import quickly

from pressure_mp import JoinableQueue, Queue

WORKERS = 4
EACH = 300
ITEMS = range(WORKERS * EACH)
#: What each producer puts.
SHARES = [ITEMS[worker::WORKERS] for worker in range(WORKERS)]

METHOD = quickly.get_start_method()


@pytest.fixture(params=["default", "buffering", "multiprocessing"])
def make(request, own_server):
    """Queues of one kind."""
    made = []

    def make(joinable=False):
        if request.param == "multiprocessing":
            made.append(quickly.JoinableQueue() if joinable else quickly.Queue())
            return made[-1]
        options = {"buffering": 1000} if request.param == "buffering" else {}
        made.append((JoinableQueue if joinable else Queue)(url=own_server.url, **options))
        return made[-1]

    yield make
    for q in made:
        q.close()


@pytest.fixture
def starts(start):
    """Starts a process for each worker; these, and the pipe to each."""

    def starts(program, *args):
        return [start(program, *args, method=METHOD) for _ in range(WORKERS)]

    return starts


def received(started):
    return sorted(item for _, pipe in started for item in pipe.recv())


def join(started):
    for process, _ in started:
        process.join()


def test_each_producer_puts_its_own_mark_behind_its_items(make, start, starts):
    q = make()
    producers = [start(programs.produce, q, share, 1, method=METHOD) for share in SHARES]
    consumers = starts(programs.consume, q)
    assert received(consumers) == list(ITEMS)
    join(producers + consumers)
    assert q.empty()


def test_one_producer_puts_a_mark_for_each_consumer(make, starts):
    q = make()
    consumers = starts(programs.consume, q)
    programs.produce(None, q, ITEMS, WORKERS)
    assert received(consumers) == list(ITEMS)
    join(consumers)
    assert q.empty()


def test_a_mark_is_passed_on_to_the_next_consumer(make, starts):
    q = make()
    consumers = starts(programs.consume_and_pass_on, q)
    programs.produce(None, q, ITEMS, 1)
    assert received(consumers) == list(ITEMS)
    join(consumers)
    assert q.get() is None
    assert q.empty()


def test_marks_are_put_when_all_producers_have_ended(make, start, starts):
    q = make()
    consumers = starts(programs.consume, q)
    join([start(programs.produce, q, share, 0, method=METHOD) for share in SHARES])
    programs.produce(None, q, (), WORKERS)
    assert received(consumers) == list(ITEMS)
    join(consumers)
    assert q.empty()


def test_marks_come_back_behind_the_results(make, starts):
    tasks, results = make(), make()
    workers = starts(programs.work, tasks, results)
    programs.produce(None, tasks, ITEMS, WORKERS)
    found = [item for _ in workers for item in iter(results.get, None)]
    assert sorted(found) == list(ITEMS)
    join(workers)
    assert tasks.empty()
    assert results.empty()


def test_marks_are_put_when_all_tasks_are_done(make, starts):
    tasks, results = make(joinable=True), make()
    workers = starts(programs.work_until_joined, tasks, results)
    programs.produce(None, tasks, ITEMS, 0)
    tasks.join()
    programs.produce(None, tasks, (), WORKERS)
    assert sorted(results.get() for _ in ITEMS) == list(ITEMS)
    tasks.join()
    join(workers)
    assert tasks.empty()
    assert results.empty()
