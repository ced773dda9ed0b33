"""Counts how often each operation waits for the server: ``python round_trips.py URL NAME``.

A round trip is to send something over a connection, and then to read what comes back; but not to
ask for one more chunk of a large item while others are still to come. It prints a line for each
operation: its name, a tab, and how many round trips it took. Counted is what this program's only
thread waits for.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import redis


class CountedSocket(socket.socket):
    """Counts the round trips of the main thread."""

    trips = 0
    _asked = False
    _asked_for_chunks = False

    def sendall(self, data: Any, *args: Any) -> None:
        if data == b"*0\r\n":  # no command, and no reply: the server looks at the time
            return super().sendall(data, *args)
        chunks = bytes(data).count(b"\r\nHGET\r\n")
        self._asked = not (chunks == 1 and self._asked_for_chunks)
        self._asked_for_chunks = chunks > 0
        return super().sendall(data, *args)

    def recv(self, *args: Any) -> bytes:
        self._count()
        return super().recv(*args)

    def recv_into(self, *args: Any) -> int:
        self._count()
        return super().recv_into(*args)

    def _count(self) -> None:
        if self._asked and threading.current_thread() is threading.main_thread():
            CountedSocket.trips += 1
        self._asked = False


@contextmanager
def counted(operation: str) -> Iterator[None]:
    CountedSocket.trips = 0
    yield
    print(f"{operation}\t{CountedSocket.trips}", flush=True)


def main(url: str, name: str) -> None:
    socket.socket = CountedSocket  # type: ignore[misc]  # before the package, which may keep it
    from pressure_mp import Empty, JoinableQueue, Queue, TaskQueue
    from pressure_mp.engines.redis import turns

    turns.FIRST_WAIT = 3600.0  # a get that waits does nothing else until its item comes
    with counted("open, the first of a process"):
        q = Queue(0, name, url=url)
        q.open()
    with counted("open, later"):
        Queue(0, name, url=url).open()
    with counted("put"):
        q.put(1)
    with counted("get, from a queue that has items"):
        q.get()
    with counted("get_nowait, from an empty queue"), suppress(Empty):
        q.get_nowait()
    same = Queue.attach(name, url=url)
    with counted("get with a timeout of 0.02 s, from an empty queue"), suppress(Empty):
        same.get(timeout=0.02)
    q.qsize()  # now and then it looks too whether the clients with a role live
    with counted("qsize"):
        q.qsize()
    with counted("put_many(100)"):
        q.put_many(range(100))
    with counted("get_many(100)"):
        q.get_many(100)
    for megabytes in (1, 10):
        with counted(f"put of {megabytes} MB"):
            q.put(bytes(megabytes * 1_000_000))
        with counted(f"get of {megabytes} MB"):
            q.get()
    waiting("get that waits for its item", q, url)
    q.delete()
    joinable(JoinableQueue(0, f"{name}-joinable", url=url))
    tasks(TaskQueue(f"{name}-tasks", url=url))
    with counted("open of an anonymous queue, the first of a process"):
        anonymous = Queue(url=url, prefix=name)
    waiting("get of an anonymous queue that waits for its item", anonymous, url)
    with counted("close of an anonymous queue"):
        anonymous.close()


def waiting(operation: str, q: Any, url: str) -> None:
    """The second of two gets that each wait until another thread puts: the first one connects."""
    for _ in range(2):
        thread = threading.Thread(target=put_when_one_waits, args=(q, url))
        with counted(operation):
            thread.start()
            q.get()
        thread.join()
        q.qsize()  # which reads the reply that no call has waited for


def put_when_one_waits(q: Any, url: str) -> None:
    with redis.Redis.from_url(url) as client:
        while not client.info("clients")["blocked_clients"]:
            pass
    q.put(1)


def joinable(q: Any) -> None:
    q.put_many([1, 2])
    q.get()
    with counted("get of a JoinableQueue"):
        q.get()
    with counted("task_done"):
        q.task_done()
    q.task_done()
    with counted("join, when all is done"):
        q.join()
    q.delete()


def tasks(q: Any) -> None:
    q.put(0)
    q.ack(q.take())
    with counted("put of a task"):
        q.put(1)
    q.put(2)
    with counted("take"):
        task = q.take()
    with counted("take(ack=)"):
        task = q.take(ack=task)
    with counted("ack"):
        q.ack(task)
    q.delete()


if __name__ == "__main__":
    main(*sys.argv[1:])
