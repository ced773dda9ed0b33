"""A program that ends while its broker is away: it ends, in time, and says what it left."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from brokers.deployments import SERVICE, sentinels
from brokers.servers import Server
from programs import exits as programs

from pressure_mp import Queue
from pressure_mp.background import at_exit

#: Seconds that most of the programs wait for a broker, so that the tests take less time.
LIMIT = 1.5
#: Seconds beside the limit for a program to end, on a machine that has much else to do. Without the
#: limit it would wait for hours.
MARGIN = 15.0


class Program:
    """A program of its own, up to its ``ready``, to be told to end."""

    def __init__(self, *arguments, limit=LIMIT):
        self.process = subprocess.Popen(
            [sys.executable, programs.__file__, *arguments],
            env={**os.environ, "EXIT_LIMIT": str(limit)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def expect(self, line):
        assert self.process.stdout.readline() == f"{line}\n", self.process.stderr.read()

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def close(self):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def end(self):
        """Its exit status, what it said on stderr, and the seconds from its last line on."""
        self.expect("ending")
        began = time.monotonic()
        try:
            _, said = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, said, time.monotonic() - began


@pytest.fixture
def server():
    server = Server("valkey")
    try:
        yield server.start()
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGCONT)
        server.stop()


class Relay:
    """A port that leads to a server until it falls silent: from then on it accepts, and says
    nothing."""

    def __init__(self, port):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        self._port = port
        self._kept = [self._listener]
        self._is_silent = threading.Event()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def fall_silent(self):
        self._is_silent.set()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._kept.append(client)
                server = socket.create_connection(("127.0.0.1", self._port))
                self._kept.append(server)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self._is_silent.is_set():
                    target.sendall(data)

    def close(self):
        # To close the listener does not end an accept() that waits: it would take one more.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        for each in self._kept:
            each.close()


def stop(server, relay):
    server.process.send_signal(signal.SIGSTOP)


def kill(server, relay):
    server.kill()


def fall_silent(server, relay):
    relay.fall_silent()


#: How a broker goes away.
AWAY = [stop, kill, fall_silent]


def url_of(server, relay, go_away):
    return relay.url if go_away is fall_silent else server.url


@pytest.fixture
def relay(server):
    relay = Relay(server.port)
    yield relay
    relay.close()


LEFT = {
    "anonymous": ["note on 5 anonymous queues stays there"],
    "in_flight": ["in flight", "note on 1 anonymous queues stays there"],
    "buffered": ["3 items that were put", "in flight", "note on 1 anonymous queues stays there"],
    "tasks": ["in flight", "note on 1 anonymous queues stays there"],
    "named": ["3 items that were put"],
}


@pytest.mark.parametrize("go_away", AWAY)
@pytest.mark.parametrize("what", LEFT)
def test_a_program_whose_broker_is_away_ends_in_time_and_says_what_it_left(
    server, relay, what, go_away
):
    program = Program("run", what, url_of(server, relay, go_away))
    program.expect("ready")
    go_away(server, relay)
    program.go_on()
    status, said, seconds = program.end()
    assert status == 7
    assert seconds < LIMIT + MARGIN
    assert "Traceback" not in said
    for line in LEFT[what]:
        assert said.count(line) == 1, said


def test_a_queue_that_the_clearing_thread_puts_back_at_the_end_is_reported_too(server):
    program = Program("handing_back", server.url)
    program.expect("ready")
    kill(server, None)
    program.go_on()
    _, said, _ = program.end()
    assert "note on 1 anonymous queues stays there" in said


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("go_away", AWAY)
def test_a_child_process_whose_broker_is_away_ends_in_time(server, relay, method, go_away):
    program = Program("in_child", method, "buffered", url_of(server, relay, go_away))
    program.expect("ready")
    go_away(server, relay)
    program.go_on()
    program.expect("ending")  # the child's
    began = time.monotonic()
    status, said, _ = program.end()
    assert status == 7
    assert time.monotonic() - began < LIMIT + MARGIN
    assert "3 items that were put" in said


def test_several_brokers_that_are_away_share_the_time(server, relay):
    others = [Relay(server.port) for _ in range(4)]
    program = Program(
        "run", "buffered", relay.url, *(other.url for other in others), limit=at_exit.LIMIT
    )
    program.expect("ready")
    server.process.send_signal(signal.SIGSTOP)
    program.go_on()
    status, said, seconds = program.end()
    for other in others:
        other.close()
    assert status == 7
    assert seconds < at_exit.LIMIT + MARGIN
    assert said.count("3 items that were put") == 5


def test_a_broker_that_is_away_does_not_keep_others_from_being_told(server, relay):
    live = Server("valkey")
    try:
        live.start()
        program = Program("run", "anonymous", relay.url, live.url)
        program.expect("ready")
        relay.fall_silent()
        program.go_on()
        status, said, _ = program.end()
        assert status == 7
        with live.client() as client:
            assert not list(client.scan_iter(match="*anonymous*data*"))
            assert not list(client.scan_iter(match="*:users"))
        assert said.count("stays there") == 1
    finally:
        live.stop()


def test_many_sentinels_that_are_silent_share_the_time():
    with contextlib.ExitStack() as stack:
        deployment = stack.enter_context(sentinels("redis", 1))
        relays = [Relay(deployment.sentinels[0].port) for _ in range(12)]
        for relay in relays:
            stack.callback(relay.close)
        seeds = ",".join(relay.url.removeprefix("redis://") for relay in relays)
        program = Program("run", "anonymous", f"redis+sentinel://{seeds}/{SERVICE}")
        program.expect("ready")
        for relay in relays:
            relay.fall_silent()
        with deployment.primary.client() as client:
            client.client_kill_filter(_type="normal")  # so the sentinels are asked again
        program.go_on()
        status, said, seconds = program.end()
    assert status == 7
    assert seconds < LIMIT + MARGIN
    assert said.count("note on 5 anonymous queues stays there") == 1
    assert "Traceback" not in said


def test_a_full_queue_is_waited_for_longer_than_a_broker_that_is_away(server):
    program = Program("full", server.url)
    program.expect("ready")
    q = Queue(name="full", url=server.url)
    q.put_many(["other"] * 3)
    program.go_on()
    program.expect("ending")
    # Nothing is taken for longer than the program would wait for a broker that is away.
    with pytest.raises(subprocess.TimeoutExpired):
        program.process.wait(LIMIT + 1)
    assert [q.get(timeout=20) for _ in range(7)] == ["first", *["other"] * 3, 0, 1, 2]
    assert program.process.wait(20) == 0
    assert program.process.stderr.read() == ""
    program.close()


def test_a_broker_that_comes_back_in_time_gets_what_was_put(server):
    program = Program("run", "named", server.url, limit=at_exit.LIMIT)
    program.expect("ready")
    server.process.send_signal(signal.SIGSTOP)
    program.go_on()
    program.expect("ending")
    server.process.send_signal(signal.SIGCONT)
    assert program.process.wait(20) == 7
    assert program.process.stderr.read() == ""
    program.close()
    with server.client() as client:
        assert max(map(client.llen, client.scan_iter(match="*named*", _type="list"))) == 4
