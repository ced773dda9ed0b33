"""Programs that have items in flight, or are producers, and that tests kill, stop and watch."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import threading
import time
import warnings


def get_and_wait(connection, q, number):
    """Get items, say which, and do not acknowledge them; end when told to, or when killed."""
    connection.send([q.get() for _ in range(number)])
    connection.recv()


def get_and_act(connection, q, number, act):
    """Get items, say which, and then end in some way."""
    connection.send([q.get() for _ in range(number)])
    {
        "return": lambda: None,
        "raise": lambda: 1 / 0,
        "exit": lambda: os._exit(1),
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "close": lambda: (q.close(), connection.recv()),
    }[act]()


def get_late(connection, q):
    """Get an item and acknowledge it when told to; say what warnings there were."""
    connection.send(q.get())
    connection.recv()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        q.task_done()
    connection.send([warning.category.__name__ for warning in caught])


class _PollFd(ctypes.Structure):
    """See poll(2)."""

    _fields_ = (
        ("fd", ctypes.c_int),
        ("events", ctypes.c_short),
        ("revents", ctypes.c_short),
    )


def get_and_hold_the_interpreter(connection, q):
    """Get an item, and then keep every other thread of this process from running, until told."""
    item = q.get()
    hold = ctypes.PyDLL(None).poll  # unlike a CDLL, a PyDLL does not let go of the lock
    told = _PollFd(connection.fileno(), select.POLLIN, 0)
    connection.send(item)
    hold(ctypes.byref(told), 1, -1)
    q.task_done()
    connection.send("done")


def work(connection, q):
    """A consumer in the usual form."""
    for item in q:
        connection.send(item)
        q.task_done()


def get_and_fork(connection, q):
    """A consumer that forks: the child has nothing in flight, and its end gives nothing back."""
    connection.send(q.get())
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    child = os.fork()
    if child == 0:
        connection.send(q.get())
        time.sleep(20)  # it is killed long before
        os._exit(0)
    connection.recv()
    q.task_done()
    connection.send(child)
    os.waitpid(child, 0)


def threads_of(connection, q):
    """Use a queue until the thread in the background runs, and then leave it alone until that has
    ended; end when told to."""
    q.get()
    while "pressure_mp" not in [thread.name for thread in threading.enumerate()]:
        time.sleep(0.01)  # the thread was started, and may not run yet
    q.task_done()
    while "pressure_mp" in [thread.name for thread in threading.enumerate()]:
        time.sleep(0.05)
    connection.send("it has ended")
    connection.recv()


def produce(connection, q, items, act):
    """A producer that ends in some way when told to."""
    for item in items:
        q.put(item)
    connection.send("up")
    connection.recv()
    if act == "close":
        q.close()
        connection.send("closed")
        connection.recv()
    elif act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


def drain(connection, q):
    """Deal with items until the end of the stream; say which."""
    connection.send("up")
    items = []
    for item in q:
        items.append(item)
        q.task_done()
    connection.send(items)
