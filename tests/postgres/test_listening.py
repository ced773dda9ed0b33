"""A process that receives no notifications looks by itself, and says so, until it can hear them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import threading

import psycopg
import pytest
from brokers import postgres as servers
from brokers.pgbouncer import pooling
from waiting import HOURS, Background, until

from pressure_mp import BrokerUnavailable, Empty, Queue, examine_broker
from pressure_mp.engines import registry
from pressure_mp.engines.blocking_coroutines import finish
from pressure_mp.engines.postgres import listener, notifications, session
from pressure_mp.engines.postgres.wire import BlockingWire, Wire


@pytest.fixture
def warnings(caplog):
    """What was logged so far of notifications that are not heard."""
    caplog.set_level(logging.WARNING, "pressure_mp")
    return lambda: [text for text in caplog.messages if "receive no notifications" in text]


@pytest.fixture(scope="module")
def pooled(own_postgres):
    """The URL of a pooler that gives each transaction another session."""
    with pooling(own_postgres, "transaction") as url:
        yield f"{url}?prepare=0&application_name="


#: The locks of sessions that listen and, for a moment, of sessions that make a call.
LOCKS = "SELECT pid, objid FROM pg_locks WHERE locktype = 'advisory'"


def get(caller, url, name, **options):
    """What a program gets."""
    q = caller.queues.Queue(name=name, url=url)
    return caller.do(q.get(**options))


def findings(url):
    """The findings on where notifications come from."""
    return [found for found in examine_broker(url=url) if found.subject == "listen"]


@pytest.mark.parametrize("lacks", ["thread", "descriptor"])
def test_a_process_that_had_no_thread_or_descriptor_left_listens_later(
    postgres, name, warnings, monkeypatch, lacks
):
    monkeypatch.setattr(listener, "_PAUSE", 0.0)
    url = f"{postgres.limited_url}?application_name={name}"
    q = Queue(name=name, url=url)
    q.open()

    def refuse(*args):
        raise RuntimeError("none left") if lacks == "thread" else OSError(errno.EMFILE, "none left")

    with monkeypatch.context() as patched:
        if lacks == "thread":
            patched.setattr(listener.threading.Thread, "start", refuse)
        else:
            patched.setattr(listener.os, "pipe", refuse)
        with pytest.raises(Empty):
            q.get(timeout=0.3)
    assert "none left" in warnings()[0]
    getting = Background(q.get)
    until(lambda: registry.engine(registry.parse(url)).listener.number is not None)
    q.put("item")
    assert getting.result() == "item"


def test_an_address_at_which_no_server_listens_is_named_once(
    caller, postgres, name, warnings, monkeypatch
):
    monkeypatch.setattr(listener, "_PAUSE", 0.0)  # it tries again each time that it looks
    url = f"{postgres.limited_url}?listen=127.0.0.1:1&application_name={name}"
    q = Queue(name=name, url=postgres.limited_url)
    for number in range(3):
        getting = Background(get, caller, url, name)
        getting.join(0.3)
        assert getting.is_alive()
        q.put(number)
        assert getting.result() == number
    (warning,) = warnings()
    assert "127.0.0.1:1/postgres" in warning
    assert "refused" in warning


def test_an_address_that_leads_to_another_server_is_named(
    caller, postgres, own_postgres, name, warnings
):
    url = f"{own_postgres.limited_url}?listen=127.0.0.1:{postgres.port}&application_name={name}"
    getting = Background(get, caller, url, name)
    (warning,) = until(warnings)
    Queue(name=name, url=own_postgres.limited_url).put("item")
    assert getting.result() == "item"
    (found,) = findings(url)
    for text in (warning, found.problem):
        assert f"listen=127.0.0.1:{postgres.port} in the URL leads to another server" in text


def test_doctor_names_an_address_at_which_no_server_listens(postgres):
    (found,) = findings(f"{postgres.limited_url}?listen=127.0.0.1:1")
    assert found.value == "127.0.0.1:1"
    assert "127.0.0.1:1/postgres" in found.problem
    assert findings(f"{postgres.limited_url}?listen=no") == findings(postgres.limited_url) == []


class Silent:
    """An address that answers nothing, until it leads to the server."""

    def __init__(self, server):
        self._server = server
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._open = []
        self._threads = []

    def lead(self):
        self._start(self._accept)

    def _start(self, call, *args):
        self._threads.append(threading.Thread(target=call, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        while True:
            try:
                self._open.append(self._listening.accept()[0])
            except OSError:
                return  # it was closed
            self._open.append(socket.create_connection(("127.0.0.1", self._server.port)))
            near, far = self._open[-2:]
            self._start(self._copy, near, far)
            self._start(self._copy, far, near)

    def _copy(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self._end([self._listening], self._threads[:1])  # from now on there are no more of either
        self._end(self._open, self._threads)

    def _end(self, sockets, threads):
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for one in sockets:
            one.close()


@pytest.fixture
def silent(postgres):
    found = Silent(postgres)
    yield found
    found.close()


def test_a_waiting_get_does_not_wait_for_an_address_that_says_nothing(
    caller, postgres, silent, name, monkeypatch
):
    monkeypatch.setattr(notifications, "_TIMEOUT", HOURS)
    url = f"{postgres.limited_url}?listen=127.0.0.1:{silent.port}"
    with pytest.raises((Empty, asyncio.QueueEmpty)):
        get(caller, url, name, timeout=0.05)
    getting = Background(get, caller, url, name)
    getting.join(0.3)
    Queue(name=name, url=postgres.limited_url).put("item")
    assert getting.result() == "item"
    silent.lead()


def test_a_connection_that_broke_while_it_was_checked_is_refused_as_one_that_is_away(postgres):
    address = registry.parse(postgres.limited_url)
    broken = notifications.wire_to_listen(BlockingWire, address)
    broken.close()
    with pytest.raises(BrokerUnavailable, match="broke"):
        finish(notifications.listen(broken, 1))


def test_a_get_that_looks_by_itself_hears_notifications_as_soon_as_there_are_any(
    postgres, silent, name, no_ticks, monkeypatch
):
    monkeypatch.setattr(session, "_POLL", HOURS)
    monkeypatch.setattr(listener, "_PATIENCE", 0.01)
    monkeypatch.setattr(notifications, "_TIMEOUT", HOURS)
    url = f"{postgres.limited_url}?listen=127.0.0.1:{silent.port}"
    q = Queue(name=name, url=url, lease=HOURS)
    engine = registry.engine(registry.parse(url))
    getting = Background(q.get)
    slot = f"pressure_mp.slot('{engine.prefix}', 'items', '{name}')"
    looks = f"SELECT 1 FROM pressure_mp.waiting WHERE slot = {slot} AND listener IS NULL"
    until(lambda: servers.look(engine, looks))
    silent.lead()
    until(lambda: servers.waiters(engine, name) == 1)
    Queue(name=name, url=postgres.url).put("item")
    assert getting.result() == "item"


def test_a_pooler_that_sends_none_is_named(caller, own_postgres, pooled, name, warnings):
    url = f"{pooled}{name}"
    getting = Background(get, caller, url, name)
    (warning,) = until(warnings)
    Queue(name=name, url=own_postgres.limited_url).put("item")
    assert getting.result() == "item"
    assert "a pooler does that" in warning
    (found,) = findings(url)
    assert found.value == "not set"
    assert findings(f"{url}&listen=127.0.0.1:{own_postgres.port}") == []
    until(lambda: not own_postgres.execute(LOCKS))  # no session is taken for one that listens


def test_a_pooler_is_named_although_another_client_had_the_session_for_a_moment(
    own_postgres, pooled, name, monkeypatch
):
    execute_text, held = Wire.execute_text, []
    with psycopg.connect(pooled.partition("?")[0]) as other:

        async def execute(wire, text, timeout):
            if text == "BEGIN" and not held:
                held.append(other.execute("SELECT pg_backend_pid()").fetchone())
            found = await execute_text(wire, text, timeout)
            other.commit()
            return found

        monkeypatch.setattr(Wire, "execute_text", execute)
        (found,) = findings(f"{pooled}{name}")
    assert held
    assert "a pooler does that" in found.problem


def test_a_pooler_that_leaves_sessions_to_its_users_sends_them(
    own_postgres, name, warnings, no_ticks
):
    with pooling(own_postgres, "session", size=10) as url:
        q = Queue(name=name, url=url, lease=HOURS)
        engine = registry.engine(registry.parse(url))
        getting = Background(q.get)
        until(lambda: engine.listener.number is not None)
        Queue(name=name, url=own_postgres.url).put("item")
        assert getting.result() == "item"
        assert warnings() == []
        assert findings(url) == []
        engine.close()
