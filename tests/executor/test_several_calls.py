"""A worker takes short calls several at a time, on every engine. The workers are threads of the
test."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from brokers import rights
from executors import functions
from executors.threads import Workers
from waiting import until

from pressure_mp import Executor, TaskQueue
from pressure_mp.executor.call_queue import CallQueue

#: So many short calls that a worker takes several at a time before they are done.
MANY = 60

#: What the calls find here: the executor, futures of later calls, and so on.
here = SimpleNamespace()


def number_taken():
    """How many calls workers have now, this one included."""
    return sum(1 for _ in here.executor._queue.list("T"))


def try_to_cancel():
    """Whether a later call was taken, and whether it could be cancelled after that."""
    return here.later.running(), here.later.cancel()


def tell_to_end():
    here.workers.tell_to_end()


def refuse_the_worker_for_a_while():
    """Meanwhile its user may do nothing, and the worker finds that out."""
    here.server.execute_command("ACL", "SETUSER", "app", "-@all")
    until(lambda: "are not given back" in here.log.text)
    rights.make_user(here.server)


@pytest.fixture
def begin(executor, workers):
    """Has the calls there first, so that they are a backlog."""
    here.executor, here.workers = executor, workers
    yield workers.begin
    del here.executor, here.workers


def test_short_calls_are_taken_several_at_a_time(executor, begin):
    short = [executor.submit(abs, -one) for one in range(MANY)]
    last = [executor.submit(number_taken) for _ in range(MANY)]
    begin()
    assert [future.result(30) for future in short] == list(range(MANY))
    assert max(future.result(30) for future in last) > 1


@pytest.mark.parametrize(
    "options", [{"max_deliveries": 1}, {"max_deliveries": 2}, {"per_key": 1}], ids=str
)
def test_where_that_would_cost_something_each_comes_alone(options, url, name):
    with Executor(0, name, url=url, **options) as executor:
        here.executor = executor
        short = [executor.submit(abs, -one) for one in range(MANY)]
        last = [executor.submit(number_taken) for _ in range(3)]
        workers = Workers(executor._queue)
        workers.begin()
        assert {future.result(30) for future in last} == {1}
        assert [future.result(30) for future in short] == list(range(MANY))
        workers.end()
        executor._queue.delete()


@pytest.mark.parametrize("options", [{"max_deliveries": 2}, {"per_key": 1}], ids=str)
def test_each_comes_alone_once_that_would_cost_something(options, executor, begin, url):
    short = [executor.submit(abs, -one) for one in range(MANY)]
    begin()
    assert [future.result(30) for future in short] == list(range(MANY))
    TaskQueue(executor.name, url=url).configure(**options)
    last = [executor.submit(number_taken) for _ in range(MANY)]
    assert {future.result(30) for future in last} == {1}


def test_calls_that_wait_behind_a_long_call_are_given_to_other_workers(executor, begin, tmp_path):
    running, go_on = tmp_path / "running", tmp_path / "go on"
    before = [executor.submit(abs, -one) for one in range(MANY)]
    held = executor.submit(functions.hold, str(running), str(go_on))
    behind = [executor.submit(abs, -one) for one in range(MANY)]
    begin()
    until(lambda: functions.runs(str(running)))
    # The results of the calls before it are told while it runs.
    assert [future.result(30) for future in before] == list(range(MANY))
    until(lambda: number_taken() == 1)
    begin()
    assert [future.result(30) for future in behind] == list(range(MANY))
    assert not held.done()
    go_on.touch()
    assert held.result(30) == "held"


def test_a_call_can_be_cancelled_exactly_when_no_worker_has_taken_it(executor, begin):
    short = [executor.submit(abs, -one) for one in range(MANY)]
    asking = executor.submit(try_to_cancel)
    here.later = executor.submit(abs, -7)
    begin()
    is_taken, is_cancelled = asking.result(30)
    assert is_taken != is_cancelled
    assert is_cancelled or here.later.result(30) == 7
    assert [future.result(30) for future in short] == list(range(MANY))


def test_a_worker_that_is_told_to_end_gives_back_what_it_has_not_begun(executor, begin):
    before = [executor.submit(abs, -one) for one in range(MANY)]
    last = executor.submit(tell_to_end)
    behind = [executor.submit(abs, -one) for one in range(MANY)]
    begin()
    assert last.result(30) is None
    assert [future.result(0) for future in before] == list(range(MANY))
    here.workers.wait()
    assert number_taken() == 0
    assert executor._queue.qsize() == len(behind)
    begin()
    assert [future.result(30) for future in behind] == list(range(MANY))


@pytest.fixture
def refused(valkey, name, caplog):
    """An executor whose workers are the user of docs/security.md."""
    caplog.set_level(logging.WARNING)
    executor = Executor(0, name, url=valkey.url)
    with valkey.client() as here.server:
        here.log = caplog
        rights.make_user(here.server)
        yield executor, Workers(CallQueue.attach(name, url=rights.url(valkey)))
        executor.shutdown(wait=False, cancel_futures=True)
        executor._queue.delete()
        here.server.execute_command("ACL", "DELUSER", "app")


def test_what_came_of_calls_is_told_after_the_broker_refused_that_for_a_while(refused):
    executor, workers = refused
    before = [executor.submit(abs, -one) for one in range(MANY)]
    refusing = executor.submit(refuse_the_worker_for_a_while)
    behind = [executor.submit(abs, -one) for one in range(MANY)]
    workers.begin()
    assert refusing.result(30) is None
    for there in (before, behind):
        assert [future.result(30) for future in there] == list(range(MANY))
    workers.end()
