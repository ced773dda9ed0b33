"""Options of calls, and of executors for them, on every engine. The workers are threads of the
test."""

from __future__ import annotations

import collections
import sys
import time
from concurrent import futures

import pytest
from executors import functions
from executors.threads import Workers
from waiting import Background, until

from pressure_mp import CallDropped, Executor, Full, TaskNotFound


def test_the_call_with_the_lowest_priority_is_taken_first(executor, workers):
    late = executor.submit(list, "late")
    soon = executor.options(priority=-1).submit(list, "soon")
    order = []
    for future in (late, soon):
        future.add_done_callback(order.append)
    workers.begin()
    until(lambda: len(order) == 2)  # callbacks are called after waiting calls were woken
    assert order == [soon, late]


def test_a_call_is_taken_when_its_delay_is_over_and_not_before(executor, workers):
    never = executor.options(delay=3600).submit(list, "never")
    workers.begin()
    began = time.monotonic()
    delayed = executor.options(delay=0.3).submit(time.monotonic)
    assert executor.submit(time.monotonic).result(30) < delayed.result(30)
    assert delayed.result() > began + 0.29  # the broker counts milliseconds
    assert never.cancel()


def test_a_call_that_no_worker_takes_within_its_ttl_is_dropped(executor, workers, tmp_path):
    path = str(tmp_path / "runs")
    dropped = executor.options(ttl=0.05).submit(functions.note, path)
    with pytest.raises(CallDropped, match="its ttl is over"):
        dropped.result(30)
    workers.begin()
    assert executor.options(ttl=3600).submit(abs, -1).result(30) == 1
    assert functions.runs(path) == []


def test_a_worker_of_a_tube_takes_only_its_calls_and_others_take_all(executor, workers):
    outside = executor.submit(abs, -1)
    inside = [executor.options(tube="part").submit(abs, one) for one in range(3)]
    workers.begin(tube="part")
    assert [future.result(30) for future in inside] == [0, 1, 2]
    assert not outside.done()
    workers.begin()
    assert outside.result(30) == 1
    elsewhere = executor.options(tube="another").submit(abs, -2)
    assert elsewhere.result(30) == 2


def test_calls_of_keys_take_turns(executor, workers):
    order = []
    calls_of = [executor.options(key=key).submit(str, key) for key in "aaab"]
    for future in calls_of:
        future.add_done_callback(lambda done: order.append(done.result()))
    workers.begin()
    until(lambda: len(order) == 4)
    assert order == ["a", "b", "a", "a"]


#: What the threads of a test note, by the executor's name.
calls: dict[str, tuple] = {}


def note_that_it_runs(name, key):
    running, most, order = calls[name]
    running[key] += 1
    most[key] = max(most[key], running[key])
    order.append(key)
    time.sleep(0.002)  # others may begin meanwhile
    running[key] -= 1


def test_so_many_calls_of_one_key_run_at_a_time(url, name):
    with Executor(0, name, url=url, per_key=1) as executor:
        workers = Workers(executor._queue)
        running, most, order = collections.Counter(), collections.Counter(), []
        calls.update({name: (running, most, order)})
        futures_of = [
            executor.options(key=key).submit(note_that_it_runs, name, key) for key in "aaab"
        ]
        workers.begin(3)
        futures.wait(futures_of, 30)
        assert "".join(sorted(order)) == "aaab"
        assert set(most.values()) == {1}
        assert Executor.attach(name, url=url)._queue.settings.per_key == 1
        workers.end()
    executor._queue.delete()


def test_the_other_calls_of_a_key_wait_while_workers_are_idle(url, name, tmp_path):
    running, go_on = str(tmp_path / "running"), tmp_path / "go on"
    with Executor(0, name, url=url, per_key=2) as executor:
        workers = Workers(executor._queue)
        tenant = executor.options(key="tenant")
        held = [tenant.submit(functions.hold, running, str(go_on)) for _ in range(4)]
        workers.begin(4)
        until(lambda: len(functions.runs(running)) == 2)
        # The worker that runs these is idle, and would have taken a call of the tenant before.
        assert executor.options(key="another").submit(abs, -1).result(30) == 1
        assert executor.submit(abs, -2).result(30) == 2
        assert len(functions.runs(running)) == 2
        go_on.touch()
        assert [future.result(30) for future in held] == ["held"] * 4
        workers.end()
    executor._queue.delete()


def waits_for_space(thread):
    """Whether a thread is in a submit that blocks."""
    frame = sys._current_frames().get(thread.ident)
    while frame is not None and frame.f_code.co_name != "_wait_for_space":
        frame = frame.f_back
    return frame is not None


def test_submit_blocks_while_too_many_calls_wait_for_workers(url, name):
    with Executor(0, name, url=url, max_pending=2) as executor:
        workers = Workers(executor._queue)
        first = [executor.submit(abs, -1) for _ in range(2)]
        with pytest.raises(Full, match="max_pending=2"):
            executor.options(block=False).submit(abs, -2)
        third = Background(executor.submit, abs, -3)
        until(lambda: waits_for_space(third))
        assert first[0].cancel()
        assert not third.result().done()
        fourth = Background(executor.submit, abs, -4)
        until(lambda: waits_for_space(fourth))
        workers.begin()  # a call that is taken leaves its place
        assert fourth.result().result(30) == 4
        assert third.result().result(30) == 3
        workers.end()
    executor._queue.delete()


def test_a_callback_of_a_future_does_not_wait_for_space(url, name):
    with Executor(0, name, url=url, max_pending=1) as executor:
        raised = futures.Future()

        def submit_too_many(done):
            try:
                submitted = [executor.submit(abs, -1) for _ in range(2)]
            except Full as error:
                raised.set_exception(error)
            else:
                raised.set_result(submitted)

        executor.submit(abs, -1).add_done_callback(submit_too_many)
        call = executor._queue.take()
        call.result = (True, b"N.")
        call.ack()
        with pytest.raises(Full, match="max_pending=1; this is the thread"):
            raised.result(30)
        executor.shutdown(wait=False, cancel_futures=True)
    executor._queue.delete()


def test_a_result_that_no_call_read_goes_when_its_time_is_up(url, name):
    with Executor(0, name, url=url, result_ttl=0.1) as executor:
        workers = Workers(executor._queue)
        workers.begin()
        id = executor.submit(abs, -1).id
        until(lambda: executor._queue.stats().transitions.get("T-X"))
        until(lambda: isinstance(executor.future(id).exception(30), TaskNotFound))
        workers.end()
    executor._queue.delete()
