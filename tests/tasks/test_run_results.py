"""A run whose handlers return what cannot be stored as a result."""

from __future__ import annotations

import threading

import pytest
from brokers.servers import Server
from waiting import LIMIT, Background, until

from pressure_mp import TaskQueue
from pressure_mp.sync.tasks.dispatch import Dispatch

LARGE = "x" * 3_000_000


@pytest.fixture
def a_worker_waits(monkeypatch):
    """Is set when a worker waits for a task. What is done then, another worker acknowledges."""
    found, note = threading.Event(), Dispatch.waits

    def note_and_say_so(book, is_waiting):
        note(book, is_waiting)
        if is_waiting:
            found.set()

    monkeypatch.setattr(Dispatch, "waits", note_and_say_so)
    return found


def test_a_task_whose_result_cannot_be_encoded_is_buried_while_another_worker_waits(
    queue, run, a_worker_waits
):
    stop = threading.Event()

    def handler(task):
        assert a_worker_waits.wait(LIMIT)
        return threading.Lock() if task.data == "a lock" else task.data

    running = Background(run, handler, stop=stop, concurrency=2)
    id = queue.put("a lock", result_ttl=60)
    until(lambda: queue.peek(id).state == "B")
    assert "EncodingError" in queue.peek(id).error
    assert queue.result(queue.put("fine", result_ttl=60), timeout=LIMIT) == "fine"
    stop.set()
    running.result()


@pytest.mark.parametrize("prefetch", [0, 9])
def test_a_task_whose_result_or_error_is_too_large_for_the_server_is_buried_alone(name, prefetch):
    server = Server("valkey", ("--proto-max-bulk-len", "1mb"))
    try:
        queue = TaskQueue(name, url=server.start().url, serializer="text")
        texts = {"a": "fine", "result": LARGE, "error": LARGE, "b": "fine too"}
        ids = {data: queue.put(data, result_ttl=60) for data in texts}

        def handler(task):
            if task.data == "error":
                raise ValueError(texts[task.data])
            return texts[task.data]

        queue.shutdown()
        queue.run(handler, prefetch=prefetch)
        assert [queue.result(ids[data], timeout=0) for data in "ab"] == ["fine", "fine too"]
        for data in ("result", "error"):
            assert queue.peek(ids[data]).state == "B"
            assert "ItemTooLargeError" in queue.peek(ids[data]).error
    finally:
        server.stop()
