"""What other processes do in the tests of connections."""

from __future__ import annotations

import os
import signal
import threading

import psutil
from waiting import has_ended


def put_some(queue, number):
    for i in range(100):
        queue.put((number, i))


def wait_forever(queue, operation):
    if operation == "get":
        queue.get()
    else:
        queue.put("forever")


def get_and_fork(queue, connection):
    """Wait for an item in a thread; fork a child that lives on with all that was open."""
    threading.Thread(target=queue.get, daemon=True).start()
    connection.recv()
    child = os.fork()
    if child == 0:
        connection.recv()
        os.kill(os.getpid(), signal.SIGKILL)
    connection.send(child)
    signal.pause()


def is_alive(pid):
    try:
        return not has_ended(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False
