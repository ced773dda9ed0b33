"""Where the time of an unbuffered put and get goes, step by step, in one run.

``python -m benchmarks.steps``, with the ``test`` extra installed. It starts its own server on
loopback, on the same processor. Each figure is the lowest decile of many short trials that take
turns, because other programs on the machine only ever add to the time.
"""

from __future__ import annotations

import argparse
import os
import pickle
import socket
import sys
from typing import Any

import hiredis
import redis

from pressure_mp import Queue
from pressure_mp.engines.contract.items import Put

from .costs import PAYLOAD, Calls, measure
from .machine import stay_on_one_processor
from .server import Site, running


class Raw:
    """A bare socket with hiredis: what no client can be faster than."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()

    def request(self, *command: Any) -> Any:
        self._socket.sendall(hiredis.pack_command(command))
        self._reader.feed(self._socket.recv(1 << 16))
        return self._reader.gets()


class Answering:
    """A socket whose server takes no time."""

    def sendall(self, data: bytes) -> None: ...

    def recv(self, size: int) -> bytes:
        return b":1\r\n"


def round_trips(site: Site, rounds: int) -> None:
    raw, peer = Raw(site.port), redis.Redis(port=site.port)
    queue = Queue(name="steps", url=site.url)
    keys = [f"__pressure__:steps:key-number-{number}" for number in range(10)]
    nothing = raw.request("SCRIPT", "LOAD", "return {'done'}")
    calls: Calls = {
        "PING, bare socket": lambda: raw.request("PING"),
        "LPUSH, bare socket": lambda: raw.request("LPUSH", "raw", PAYLOAD),
        "an empty script": lambda: raw.request("EVALSHA", nothing, 0),
        "the same, 10 keys, 3 arguments": lambda: raw.request(
            "EVALSHA", nothing, 10, *keys, PAYLOAD, "client", "1"
        ),
        "Redis.lpush, with pickling": lambda: peer.lpush("peer", pickle.dumps(PAYLOAD, 5)),
        "Queue.put": lambda: queue.put(PAYLOAD),
        "Redis.rpop, with pickling": lambda: pickle.loads(peer.rpop("peer")),
        "Queue.get": queue.get,
    }
    found = measure(calls, rounds)
    show("Round trips", found)
    for ours, theirs in (("put", "lpush"), ("get", "rpop")):
        ratio = found[f"Redis.{theirs}, with pickling"] / found[f"Queue.{ours}"]
        print(f"{f'Queue.{ours} beside Redis.{theirs}':34} {ratio:6.2f} times as fast")


def steps_in_python(site: Site, rounds: int) -> None:
    queue = Queue(name="steps", url=site.url)
    queue.put(PAYLOAD)
    binding: Any = queue._at.binding
    wire: Any = next(iter(binding.engine.thread_pool._all))
    silent, item = Answering(), queue._at.codec.encode(PAYLOAD)
    args, request = (item, queue.client_id), Put((item,))

    def exchange_and_all_around() -> None:
        session = binding.session()
        session.call(request)
        session.end()

    connected, receives = wire._socket, wire._recv
    wire._socket, wire._recv = silent, silent.recv
    try:
        calls: Calls = {
            "Queue.put": lambda: queue.put(PAYLOAD),
            "  serialize (and sign)": lambda: queue._at.codec.encode(PAYLOAD),
            "  the session": exchange_and_all_around,
            "    number the call": lambda: binding.commands["put_at_once"].number(wire.lane),
            "    pack": lambda: binding.commands["put_at_once"].pack(args, 1, wire.lane, b"1"),
            "    send, read and parse": lambda: wire.exchange_now(b"x"),
        }
        show("In Python, with a socket that takes no time", measure(calls, rounds))
    finally:
        wire._socket, wire._recv = connected, receives


def steps_in_the_server(site: Site) -> None:
    """What Valkey takes for each command of the script, called in a loop from Lua."""
    keys = ["free", "sign", "closed", "bound", "producer", "messages", "bytes", "kept"]
    loop = "local f, s, c, b, p, m, y, k = unpack(KEYS) for i = 1, 100000 do %s end"
    commands = {
        "EXISTS role, space, closed": "redis.call('EXISTS', f, f, s, s, c)",
        "MGET bound, producer": "redis.call('MGET', b, p)",
        "LPUSH item (and LPOP)": "redis.call('LPUSH', 'l', 'x') redis.call('LPOP', 'l')",
        "INCRBY messages": "redis.pcall('INCRBY', m, 1)",
        "INCRBY bytes": "redis.pcall('INCRBY', y, 100)",
        "HINCRBY the call's number": "redis.pcall('HINCRBY', k, 'number', 1)",
    }
    with site.client() as client:
        client.mset({"bound": 0, "producer": "host:1:1:00000000"})
        client.lpush("free", 1)
        client.lpush("sign", 1)
        calls: Calls = {
            name: (lambda body=body: client.eval(loop % body, len(keys), *keys))
            for name, body in commands.items()
        }
        found = measure(calls, 5, 1)
    show("In the server", {name: time / 100_000 for name, time in found.items()})


def show(title: str, found: dict[str, float]) -> None:
    print(f"\n{title}:")
    for name, time in found.items():
        print(f"{name:34} {time:6.2f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    stay_on_one_processor()
    with running() as site:
        load = os.getloadavg()[0]
        print(f"Python {sys.version.split()[0]}, {site.server()}, load average {load:.1f}")
        round_trips(site, rounds)
        steps_in_python(site, rounds)
        steps_in_the_server(site)


if __name__ == "__main__":
    main()
