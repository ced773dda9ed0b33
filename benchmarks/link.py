"""What queues move over a network on which everything takes half a millisecond each way.

``python -m benchmarks.link``, with the ``test`` extra installed. It starts its own server, and a
proxy before it that delays what it passes on. Since a delay is never exact, each rate is told also
as items in the time of one round trip, which is measured over the same link.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from queue import SimpleQueue

import redis

from .peers import PEERS
from .peers.base import Peer
from .peers.pressure import PressureDefault
from .server import Site, running
from .workloads.transfer import Transfer

#: Seconds each way.
DELAY = 0.0005
PAYLOAD = b"x" * 100
_spawning = multiprocessing.get_context("spawn")


def carry(source: socket.socket, target: socket.socket) -> None:
    """Pass on all that comes, in order, each part ``DELAY`` seconds after it came."""
    parts: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

    def deliver() -> None:
        while True:
            due, part = parts.get()
            time.sleep(max(due - time.monotonic(), 0.0))
            try:
                if not part:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(part)
            except OSError:
                return

    threading.Thread(target=deliver, daemon=True).start()
    part = b"begin"
    while part:
        try:
            part = source.recv(1 << 18)
        except OSError:
            part = b""
        parts.put((time.monotonic() + DELAY, part))


def serve(port: int, pipe: Connection) -> None:
    """The link: tells its own port, and carries until its process is ended."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        pipe.send(listening.getsockname()[1])
        while True:
            near, _ = listening.accept()
            far = socket.create_connection(("127.0.0.1", port))
            for source, target in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=carry, args=(source, target), daemon=True).start()


@contextmanager
def linked(port: int) -> Iterator[int]:
    """A port at which the server of another is, behind the link."""
    pipe, theirs = _spawning.Pipe()
    process = _spawning.Process(target=serve, args=(port, theirs), daemon=True)
    process.start()
    try:
        yield pipe.recv()
    finally:
        process.terminate()
        process.join()


def round_trip(port: int, times: int) -> float:
    """Seconds for one, a median."""
    found = []
    with redis.Redis(port=port) as client:
        for _ in range(times):
            begin = time.perf_counter()
            client.ping()
            found.append(time.perf_counter() - begin)
    return statistics.median(found)


def put_only(peer: PressureDefault, site: Site, number: int) -> float:
    """Puts a second, until the broker has all."""
    q = peer.create(site).queue
    q.put(PAYLOAD)
    begin = time.perf_counter()
    for _ in range(number):
        q.put(PAYLOAD)
    q.flush()
    rate = number / (time.perf_counter() - begin)
    q.close()
    return rate


def main() -> None:
    os.environ["PRESSURE_SHARED_MEMORY"] = "0"  # measure queues at the broker
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the items, one round")
    quick = parser.parse_args().quick

    def some(number: int) -> int:
        return number // 10 if quick else number

    with running() as near, linked(near.port) as port:
        site = replace(near, port=port)

        def transfer(peer: Peer, number: int, consumers: int = 1) -> Callable[[], float]:
            workload = Transfer("link", "link", (), consumers=consumers)
            return lambda: workload.run(peer, site, some(number)).value

        def put(peer: PressureDefault, number: int) -> Callable[[], float]:
            return lambda: put_only(peer, site, some(number))

        default = PressureDefault("default", "default")
        waits = replace(default, options={"buffering": 0})
        ahead = replace(default, options={"prefetch": 1000})
        named, buffered = PEERS["pressure"], PEERS["pressure-buffered"]
        cases = {
            "put, `buffering=0`": put(waits, 2000),
            "put, default": put(default, 100_000),
            "1→1, `buffering=0`": transfer(waits, 2000),
            "1→1, default": transfer(default, 100_000),
            "1→1, `prefetch=1000`": transfer(ahead, 100_000),
            "1→4, default": transfer(default, 4000, 4),
            "1→1, with a name": transfer(named, 2000),
            "1→1, with a name, `buffering=4000, prefetch=4000`": transfer(buffered, 100_000),
        }
        trip = round_trip(port, some(500))
        print(f"one round trip: {trip * 1000:.2f} ms\n")
        print("| | items/s | in one round trip |\n| --- | --- | --- |")
        for name, case in cases.items():
            rate = statistics.median(case() for _ in range(1 if quick else 3))
            print(f"| {name} | {rate:,.0f} | {rate * trip:,.2f} |", flush=True)


if __name__ == "__main__":
    main()
