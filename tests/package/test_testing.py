"""The fixtures that programs test their queues with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"

CONFTEST = """
pytest_plugins = ["pressure_mp.testing"]
"""

TESTS = """
import asyncio
import multiprocessing

import pytest
from pressure_mp import Empty, Queue, TaskQueue, aio, list_queues

of_module = Queue(name="module")
tasks_of_module = TaskQueue("tasks of the module")

def put(name):
    Queue(name=name).put("from elsewhere")

@pytest.mark.parametrize("again", [False, True])
def test_each_test_has_a_broker_in_memory(pressure_memory, again):
    queue = Queue(name="jobs")
    assert queue.url == pressure_memory == "memory://"
    with pytest.raises(Empty):
        queue.get_nowait()
    assert [one.name for one in list_queues()] == ["jobs"]
    queue.put(1)  # the next test does not see it
    TaskQueue("tasks").put(1)

    async def look():
        async with aio.Queue(name="jobs") as queue:
            return await queue.qsize()

    assert asyncio.run(look()) == 1

@pytest.mark.parametrize("again", [False, True])
def test_each_test_has_a_server_for_its_processes(pressure_embedded, again):
    queue = Queue(name="jobs")
    assert pressure_embedded == "embedded://" and queue.empty()
    child = multiprocessing.get_context("fork").Process(target=put, args=("jobs",))
    child.start()
    assert queue.get(timeout=60) == "from elsewhere"
    child.join()
    queue.put(1)

@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("broker", ["pressure_memory", "pressure_embedded"])
def test_a_handle_of_the_module_is_at_the_broker_of_each_test(request, broker, again):
    assert of_module.url.startswith("redis://")
    request.getfixturevalue(broker)
    assert of_module.qsize() == tasks_of_module.qsize() == 0
    of_module.put(1)
    tasks_of_module.put(2)
    assert (of_module.qsize(), tasks_of_module.take(0).data) == (1, 2)
"""


def test_each_test_of_a_program_has_its_own_broker(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    examples = re.findall("```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    pages = {f"test_{place}_of_the_document": one for place, one in enumerate(examples)}
    pytester.makepyfile(test_own=TESTS, **pages)
    pytester.runpytest_subprocess().assert_outcomes(passed=11)
