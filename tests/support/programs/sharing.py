"""What processes do that share a queue in memory."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Any

from pressure_mp.engines.contract.session import is_local


def put_numbers(there: Any, producer: int, number: int) -> None:
    """Put so many pairs of the producer's number and a count."""
    for count in range(number):
        there.put((producer, count))


def get_and_tell(there: Any, write: int) -> None:
    """Get for ever, and write each pair to a pipe when it was got: one line, one write."""
    while True:
        producer, count = there.get()
        os.write(write, b"%d %d\n" % (producer, count))


def double(there: Any, back: Any) -> None:
    """Put back twice of each item until it is None."""
    while (item := there.get()) is not None:
        back.put(2 * item)


def get_then_finish(queue: Any, number: int, may_finish: Any) -> None:
    """Get so many items, and call ``task_done()`` for each when an event is set."""
    for _ in range(number):
        queue.get()
    may_finish.wait()
    for _ in range(number):
        queue.task_done()


def get_one_and_stay(there: Any, told: Any) -> None:
    """Get items as they come, tell of each, and go on until there is a None."""
    while (item := there.get()) is not None:
        told.send(item)
    told.send(None)


def move_and_die(there: Any, calls: int) -> None:
    """Have the items moved to the broker, and die when it has been asked so many times, before
    that is noted here."""
    add, done = there._at.binding.below.add_moved, 0

    def add_and_die(moved: Any, end: float | None) -> None:
        nonlocal done
        add(moved, end)
        done += 1
        if done == calls:
            os.kill(os.getpid(), signal.SIGKILL)

    there.qsize()
    there._at.binding.below.add_moved = add_and_die
    there._at.binding.move_to_broker()


def put_one_and_die(there: Any, item: object) -> None:
    """Die as soon as the first put has returned."""
    there.put(item)
    os.kill(os.getpid(), signal.SIGKILL)


def hold_the_lock_and_die(there: Any) -> None:
    """Die in the midst of a put, with the lock of puts and the lock of gets."""
    ring = there._at.binding.items.ring
    ring.taking.run(lambda: ring.putting.run(lambda: os.kill(os.getpid(), signal.SIGKILL)))


def hold_the_locks(there: Any, told: Any) -> None:
    """Hold the lock of puts and the lock of gets for a second."""
    there.qsize()
    ring = there._at.binding.items.ring

    def say_and_stay() -> None:
        told.send("has them")
        time.sleep(1)

    ring.taking.run(lambda: ring.putting.run(say_and_stay))


def run_with_limit(url: str) -> None:
    """Put and get with no place for more than a megabyte in a file."""
    import resource

    from pressure_mp import Queue

    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    with Queue(url=url) as there:
        assert not is_local(there._at.binding)
        for number in range(100):
            there.put(number)
        assert [there.get() for _ in range(100)] == list(range(100))


def make_without_descriptors(url: str) -> None:
    """Make a queue while this process can open no file, and use it later."""
    import resource

    from pressure_mp import Queue

    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with Queue(url=url) as used, Queue(url=url, buffering=9) as connected:
        for queue in (used, connected):  # also to import what a queue needs
            queue.put("item")
            assert queue.get(timeout=30) == "item"
        opened = []
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        made = Queue(url=url)
        made.put("first")
        for number in opened:
            os.close(number)
        made.put("second")
        assert [made.get(timeout=30) for _ in range(2)] == ["first", "second"]
        made.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
