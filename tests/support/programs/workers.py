"""Programs that run handlers on tasks, and that tests tell to stop, kill and watch."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import suppress

from pressure_mp import TaskError


def work(connection, queue, says_when_told=False, interrupts=True, **options):
    """Say which task was begun; finish it when told to. In the end say that all is well.

    It can also say when it has noticed that it is to end; and run without ``interrupts``, as a
    program that a shell starts in the background.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler if interrupts else signal.SIG_IGN)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    talking = threading.Lock()

    def say(record):
        with talking:
            connection.send(record.getMessage())

    warnings = Warnings(say if says_when_told else None)
    logging.getLogger("pressure_mp").addHandler(warnings)
    logging.getLogger("pressure_mp").setLevel(logging.INFO)

    told = threading.Semaphore(0)
    listening = threading.Thread(target=_listen, args=(connection, told), daemon=True)
    listening.start()

    def handle(task):
        with talking:
            connection.send(task.data)
        told.acquire()

    queue.run(handle, **options)
    after = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    connection.send(("ended", before == after, warnings.texts))


def _listen(connection, told):
    with suppress(EOFError):
        while connection.recv():
            told.release()


def exit_in_a_handler(connection, queue):
    """A handler that ends its process in the usual way, while it has the task."""

    def handle(task):
        connection.send(task.data)
        raise SystemExit(7)

    queue.run(handle)


def take_late(connection, queue):
    """Take a task, and say what becomes of it when told to; say which error that is."""
    task = queue.take()
    connection.send(task.data)
    connection.recv()
    try:
        task.ack()
    except TaskError as error:
        connection.send((type(error).__name__, error.state, str(error)))


class Warnings(logging.Handler):
    """The warnings that were logged; ``note`` is called with each record of a lower level."""

    def __init__(self, note=None):
        super().__init__()
        self.texts = []
        self.note = note

    def emit(self, record):
        if record.levelno >= logging.WARNING:
            self.texts.append(record.getMessage())
        elif self.note:
            self.note(record)
