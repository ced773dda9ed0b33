"""A task that failed has the traceback of its error."""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing

import pytest
from programs import tasks as programs
from waiting import LIMIT, Background

from pressure_mp import RemoteTraceback, aio
from pressure_mp.encoding.reports import LONGEST_ERROR, LONGEST_TRACEBACK


def fails_here(task):
    raise ValueError(f"no {task.data}")


async def fails_in_a_coroutine(task):
    fails_here(task)


def fails_in_a_batch(tasks):
    fails_here(tasks[0])


def failed(queue, text="one", **options):
    """A task that was released with an exception that was raised."""
    queue.put(text, **options)
    task = queue.take(0)
    try:
        fails_here(task)
    except ValueError as error:
        task.release(error=error)
    return task


async def _run_in_loop(url, name, handler, executor):
    async with aio.TaskQueue(name, url=url) as queue:
        await queue.run(handler, on_error="bury", executor=executor)


@pytest.mark.parametrize("how", ["thread", "coroutine", "thread of asyncio", "process", "batch"])
def test_a_handler_that_raises_leaves_its_traceback_with_the_task(queue, url, name, how):
    id = queue.put("data")
    executor = None
    if how == "process":
        spawn = multiprocessing.get_context("spawn")
        executor = concurrent.futures.ProcessPoolExecutor(1, spawn)
    if how == "batch":
        queue.batch(size=1, wait=0, on_error="bury")(fails_in_a_batch)
        running = Background(queue.run)
    elif how == "thread":
        running = Background(queue.run, fails_here, on_error="bury")
    else:
        handlers = {"coroutine": fails_in_a_coroutine, "process": programs.fail}
        handler = handlers.get(how, fails_here)
        running = Background(asyncio.run, _run_in_loop(url, name, handler, executor))
    assert queue.wait(id, timeout=LIMIT)[0].state == "B"
    queue.shutdown()
    running.result()
    if executor is not None:
        executor.shutdown()
    task = queue.peek(id)
    assert task.error == "ValueError: no data"
    assert ", in fail" in task.traceback
    assert task.traceback.endswith(task.error)


def test_a_later_error_replaces_the_error_and_its_traceback(queue):
    task = failed(queue)
    assert "fails_here" in task.traceback
    task = queue.take(0)
    assert "fails_here" in task.traceback, "of the delivery before"
    task.release(delay=60)
    assert "fails_here" in queue.peek(task.id).traceback, "nothing was said"
    queue.restart(task.id)
    queue.take(0).bury(error="as told")
    found = queue.peek(task.id)
    assert (found.error, found.traceback) == ("as told", None)


def test_an_exception_that_was_never_raised_has_no_traceback(queue):
    queue.put(1)
    task = queue.take(0)
    task.bury(error=KeyError("why"))
    assert (task.error, task.traceback) == ("KeyError: 'why'", None)


def test_an_exception_whose_text_raises_another_fails_its_task_all_the_same(queue):
    class Odd(Exception):
        def __str__(self):
            raise SystemExit

    queue.put(1)
    with pytest.raises(Odd), queue.take(0, on_error="bury") as task:
        raise Odd
    assert (task.state, task.error) == ("B", "an exception whose text raises another")
    assert "raise Odd" in task.traceback


def test_the_error_of_a_task_whose_ttr_is_over_has_no_traceback(queue):
    id = failed(queue).id
    queue.take(0, ttr=0.001)
    task = queue.take(LIMIT)
    assert (task.id, task.traceback) == (id, None)
    assert "ttr" in task.error


def test_of_a_long_error_the_beginning_is_kept_and_of_its_traceback_the_end(queue):
    task = failed(queue, "x" * 10_000 + " the end")
    assert task.error == "ValueError: no " + "x" * (LONGEST_ERROR - 15)
    assert len(task.traceback) == LONGEST_TRACEBACK
    assert task.traceback.endswith("x the end")


def test_an_error_may_have_any_characters(queue):
    task = failed(queue, "a\x1fb\0c\udc80\x1f", id="odd")
    assert queue.peek("odd").error == task.error == "ValueError: no a b c\\udc80 "
    assert task.traceback.endswith("no a b c\\udc80")


def test_an_inbox_has_the_traceback_of_a_task_whose_result_is_not_kept(queue):
    with queue.inbox() as inbox:
        inbox.watch([failed(queue).id])
        queue.take(0).bury()
        result = inbox.take(LIMIT)[-1].result
    assert "ValueError: no one" in str(result.error)
    assert isinstance(result.error.__cause__, RemoteTraceback)
    assert "fails_here" in str(result.error.__cause__)


def test_the_diagnosis_tells_the_error_without_its_traceback(queue):
    failed(queue)
    assert "fails_here" not in str(queue.why_blocked())
