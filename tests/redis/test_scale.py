"""A thousand queues in one process: connections, threads and memory stay within bounds."""

from __future__ import annotations

import gc
import threading
import tracemalloc

from waiting import Background, blocked, until

from pressure_mp import JoinableQueue, Queue

MANY = 1000
WAITING = 16
#: Connections beside two for each operation that waits: it may need another to end its wait.
POOL = 4
KB = 1024


def connections(client):
    return len(client.client_list()) - 1


def use(queues):
    for q in queues:
        q.put("item")
    for q in queues:
        assert q.get() == "item"


def test_a_thousand_queues_share_one_connection_and_need_no_thread(own_server):
    first = Queue(url=own_server.url)
    use([first])
    threads = threading.active_count()
    with own_server.client() as client:
        before = connections(client)
        tracemalloc.start()
        try:
            queues = [Queue(name=f"queue-{number}", url=own_server.url) for number in range(MANY)]
            use(queues)
            gc.collect()  # garbage is not memory of these queues
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert connections(client) == before == 1
        assert threading.active_count() <= threads
        assert grown / MANY < 32 * KB


def test_there_are_as_many_connections_as_operations_that_wait(own_server):
    queues = [Queue(name=f"queue-{number}", url=own_server.url) for number in range(MANY)]
    with own_server.client() as client:
        for _ in range(2):
            waiting = [Background(q.get) for q in queues[:WAITING]]
            until(lambda: blocked(client) == WAITING)
            use(queues[WAITING:])
            assert connections(client) <= 2 * WAITING + POOL
            for q in queues[:WAITING]:
                q.put("item")
            assert {one.result() for one in waiting} == {"item"}
            queues.reverse()
        assert connections(client) <= 2 * WAITING + POOL


def test_one_thread_sees_to_the_items_in_flight_of_many_queues(own_server):
    threads = threading.active_count()
    queues = [JoinableQueue(name=f"queue-{number}", url=own_server.url) for number in range(100)]
    use(queues)
    assert threading.active_count() <= threads + 1
    with own_server.client() as client:
        assert connections(client) <= POOL
    for q in queues:
        q.task_done()
