"""From a put to the return of a get that waits for it in another process; and what it costs that
others listen for notifications in the same database.

``python -m benchmarks.postgres.waiting``, with the ``bench`` extra and PostgreSQL installed. What
is compared takes turns; each figure is the median of all rounds.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from multiprocessing.queues import SimpleQueue

import psycopg

from pressure_mp import Queue

from .peers import PAYLOAD
from .server import measure_each_setting

#: How many others listen.
LISTENERS = 64
#: Puts of a round for waiting gets, and seconds between two of them: each finds all waiting.
WAITED_FOR, PAUSE = 40, 0.02
#: Puts of a round for which no get waits.
PUTS = 200
_fork = multiprocessing.get_context("fork")


def _get(url: str, name: str, told: SimpleQueue[float]) -> None:
    queue: Queue[float] = Queue(name=name, url=url)
    told.put(0.0)
    while (begin := queue.get()) >= 0:
        told.put(time.perf_counter() - begin)


class Waiting:
    """So many processes that wait for an item."""

    def __init__(self, url: str, number: int) -> None:
        name = f"waiting-{number}"
        self._told: SimpleQueue[float] = _fork.SimpleQueue()
        arguments = (url, name, self._told)
        self._processes = [_fork.Process(target=_get, args=arguments) for _ in range(number)]
        for process in self._processes:
            process.start()
        for _ in self._processes:
            self._told.get()
        self._queue: Queue[float] = Queue(name=name, url=url)

    def seconds(self) -> list[float]:
        """How long each of the items of a round took."""
        found = []
        for _ in range(WAITED_FOR):
            time.sleep(PAUSE)
            self._queue.put(time.perf_counter())
            found.append(self._told.get())
        return found

    def close(self) -> None:
        for _ in self._processes:
            self._queue.put(-1.0)
        for process in self._processes:
            process.join()
        self._queue.close()


class Notifying:
    """A table by hand: each put is told by NOTIFY."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("CREATE TABLE notified (id bigserial, item bytea)")
        self._connection.execute("LISTEN notified")

    def put(self) -> None:
        self._connection.execute(
            "WITH put AS (INSERT INTO notified (item) VALUES (%b)) "
            "SELECT pg_notify('notified', '')",
            (PAYLOAD,),
        )


@contextlib.contextmanager
def listening(url: str) -> Iterator[None]:
    """Others listen, each on a channel of its own, and hear nothing."""
    with contextlib.ExitStack() as others:
        for number in range(LISTENERS):
            connection = others.enter_context(psycopg.connect(url, autocommit=True))
            connection.execute(f"LISTEN other_{number}")
        yield


def measure(url: str, rounds: int) -> None:
    address = f"{url}?create=1"
    queue: Queue[bytes] = Queue(name="puts", url=address)
    by_hand = Notifying(url)
    puts = {"Queue": lambda: queue.put(PAYLOAD), "INSERT and NOTIFY by hand": by_hand.put}
    waiting = {number: Waiting(address, number) for number in (1, 8)}
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for others, among in (
            ("", contextlib.nullcontext()),
            (f", {LISTENERS} listen", listening(url)),
        ):
            with among:
                for number, waiters in waiting.items():
                    title = f"get, {number} waiting{others}"
                    found.setdefault(title, []).extend(waiters.seconds())
                for title, put in puts.items():
                    begin = time.perf_counter()
                    for _ in range(PUTS):
                        put()
                    taken = (time.perf_counter() - begin) / PUTS
                    found.setdefault(f"put, {title}{others}", []).append(taken)
    for one in waiting.values():
        one.close()
    queue.close()
    for title, seconds in sorted(found.items()):
        middle = statistics.median(seconds)
        print(f"  {title:42} {middle * 1e6:8,.0f} µs  {1 / middle:8,.0f}/s")


if __name__ == "__main__":
    measure_each_setting(__doc__, measure)
