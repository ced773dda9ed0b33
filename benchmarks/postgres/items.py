"""What batches of items cost the server, in the queues of each order.

``python -m benchmarks.postgres.items``, with PostgreSQL installed; ``--only`` chooses. The figures
are microseconds of the server's processor time for one item, medians over the calls: of the process
that serves the only client. ``--url`` measures at a server that runs already, and several
``--schema`` compare the versions of the package that are installed in these, in turn.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from pressure_mp.encoding import sort_keys
from pressure_mp.engines import registry
from pressure_mp.engines.contract.items import (
    Acknowledge,
    EndPrefetch,
    Hold,
    Prefetch,
    Purge,
    Put,
    Requeue,
    Take,
)
from pressure_mp.engines.contract.queues import How, Open
from pressure_mp.engines.contract.session import Options

from .peers import PAYLOAD
from .server import running

SIZES = (1, 16, 128, 1000)
#: The disciplines, and how many sort keys take turns.
ORDERS = (("fifo", 0), ("priority", 10), ("priority", 1000), ("fair", 3), ("fair", 100))
#: Items of each size in a round, at least so many calls.
ITEMS, CALLS = 1000, 3
OWNER = "benchmark/1/1/aaaaaaaa"


class Server:
    """The process of the server that serves the calls."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
                "AND pid <> pg_backend_pid() AND query LIKE %s",
                [f'%"{url.rpartition("schema=")[2].partition("&")[0]}".%'],
            ).fetchall()
        ((pid,),) = rows
        self._spent = Path(f"/proc/{pid}/schedstat")

    def spent(self) -> float:
        """Return the microseconds of processor time that it has had."""
        return int(self._spent.read_text().split()[0]) / 1000


class Queue:
    """A queue whose requests are made over one connection."""

    def __init__(self, url: str, discipline: str, keys: int) -> None:
        engine = registry.engine(registry.parse(url).started())
        name = f"{discipline}-{keys}"
        self._session = engine.bind(name, discipline, Options(lease=60_000)).session()
        self._session.call(Open(How.OPEN, 0))
        self._keys = [
            sort_keys.encode(at) if discipline == "priority" else b"1 key %d" % at
            for at in range(keys)
        ]
        self._call = 0
        self._server = Server(url)

    def _spent(self, request: Any) -> tuple[float, Any]:
        before = self._server.spent()
        reply = self._session.call(request)
        return self._server.spent() - before, reply

    def _put(self, number: int) -> float:
        keys = [self._keys[at % len(self._keys)] for at in range(number)] if self._keys else ()
        spent, reply = self._spent(Put([PAYLOAD] * number, keys))
        assert reply.number == number
        return spent

    def round(self, size: int) -> Iterator[tuple[str, float]]:
        """Put and take a batch in each way that the discipline has."""
        yield "put", self._put(size)
        spent, taken = self._spent(Take(size))
        yield "get", spent
        assert len(taken.items) == size
        yield "take back", self._spent(self._session.taken)[0]
        yield "purge", self._spent(Purge())[0]
        if not self._keys:
            yield from self._hold_and_prefetch(size)

    def _hold_and_prefetch(self, size: int) -> Iterator[tuple[str, float]]:
        self._call += 1
        self._put(size)
        spent, taken = self._spent(Take(size, Hold(OWNER, self._call)))
        yield "get, in flight", spent
        assert len(taken.items) == size
        yield "acknowledge one", self._spent(Acknowledge(OWNER, taken.numbers[0]))[0] * size
        yield "requeue", self._spent(Requeue(OWNER, None, self._call))[0]
        self._put(1)
        reader = f"{OWNER}#1"
        spent, taken = self._spent(Prefetch(reader, self._call, 0, 0, size))
        yield "prefetch", spent
        assert len(taken.items) == size
        yield "end prefetch", self._spent(EndPrefetch(reader, self._call, 0))[0]
        self._session.call(Purge())


def measure(urls: dict[str, str], rounds: int, only: str) -> None:
    """Print the figures of each schema."""
    for discipline, keys in ORDERS:
        if only not in discipline:
            continue
        title = f"{discipline}, {keys} keys" if keys else discipline
        queues = {schema: Queue(url, discipline, keys) for schema, url in urls.items()}
        for size in SIZES:
            spent: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
            for at in range(max(ITEMS // size, CALLS) * rounds + 1):
                for schema, queue in queues.items():
                    for verb, cost in queue.round(size):
                        if at:  # the first call makes plans
                            spent[verb][schema].append(cost / size)
            for verb, found in spent.items():
                figures = " ".join(f"{statistics.median(costs):10.1f}" for costs in found.values())
                print(f"{title:20} {size:5} {verb:14} {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of a discipline's name")
    parser.add_argument("--url")
    parser.add_argument("--schema", action="append")
    options = parser.parse_args()
    schemas = options.schema or ["pressure_mp"]
    print(f"load average {os.getloadavg()[0]:.1f}; {', '.join(schemas)}")
    if options.url:
        urls = {one: f"{options.url}?schema={one}&create=1" for one in schemas}
        measure(urls, options.rounds, options.only)
        return
    with running("synchronous_commit=off") as url:
        urls = {one: f"{url}?schema={one}&create=1" for one in schemas}
        measure(urls, options.rounds, options.only)


if __name__ == "__main__":
    main()
