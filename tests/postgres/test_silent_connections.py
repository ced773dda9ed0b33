"""A connection that swallows all that is sent, while its server answers over other connections:
each call that it swallowed is made again, and done once."""

from __future__ import annotations

import psycopg
import pytest
from brokers.breaking import REPLIES, REQUESTS
from inside import replies_of
from waiting import HOURS, Background, until

from pressure_mp import JoinableQueue, Queue
from pressure_mp.engines.postgres import wire


def _put(q, proxied):
    proxied.put("item")
    return [q.get(), q.qsize()]


def _put_many(q, proxied):
    proxied.put_many(range(1000))
    return [q.get_many(2000), q.qsize()]


def _put_much(q, proxied):
    """More than the sockets on the way take."""
    proxied.put(bytes(20_000_000))
    return [len(q.get()), q.qsize()]


def _get(q, proxied):
    q.put_many([1, 2])
    return [proxied.get(), q.get(), q.qsize()]


def _get_that_waits(q, proxied):
    getting = Background(proxied.get, timeout=HOURS)
    q.put("item")
    return [getting.result(), q.qsize()]


def _task_done(q, proxied):
    q.put(1)
    got = proxied.get()
    proxied.task_done()
    q.join()
    return got


def queue(**at):
    return Queue(**at)  # of the world that the test is in


def joinable(**at):
    return JoinableQueue(**at)


#: The function that makes the queue; the call; its result.
CALLS = {
    "put": (queue, _put, ["item", 0]),
    "put_many": (queue, _put_many, [list(range(1000)), 0]),
    "put of 20 MB": (queue, _put_much, [20_000_000, 0]),
    "get": (queue, _get, [1, 2, 0]),
    "get that waits": (queue, _get_that_waits, ["item", 0]),
    "get and task_done": (joinable, _task_done, 1),
}


def _call_over_silent_connections(server, proxy, name, way, kind, call):
    url = proxy.url_at("postgresql", "/postgres?user=worker")
    proxied = kind(name=name, url=url)
    proxied.qsize()
    for link in proxy.links:
        link.silent.add(way)
    return call(kind(name=name, url=server.limited_url), proxied)


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("way", [REQUESTS, REPLIES])
def test_a_call_over_a_silent_connection_is_done_once(own_postgres, proxies, name, way):
    calls = {f"{name}-{number}": call for number, call in enumerate(CALLS.values())}
    running = [
        (
            Background(
                _call_over_silent_connections,
                own_postgres,
                proxies(own_postgres),
                own_name,
                way,
                kind,
                call,
            ),
            expected,
        )
        for own_name, (kind, call, expected) in calls.items()
    ]
    for one, expected in running:
        assert one.result(100) == expected


def asking_soon(monkeypatch):
    """The server's answers, which is asked after a tenth of a second without a byte."""
    monkeypatch.setattr(wire, "SILENCE", 0.1)
    return replies_of(monkeypatch, wire, "waits_for_client")


@pytest.mark.usefixtures("world")
def test_a_call_that_waits_for_a_lock_is_waited_for(own_postgres, name, monkeypatch):
    """The server is asked meanwhile, and says that the call is under way."""
    asked = asking_soon(monkeypatch)
    q = Queue(name=name, url=own_postgres.limited_url)
    q.put(1)
    with psycopg.connect(own_postgres.url) as other:
        other.execute("SELECT FROM pressure_mp.queues FOR UPDATE")
        putting = Background(q.put, 2)
        until(lambda: len(asked) > 1)
        assert putting.is_alive()
        assert not any(asked)  # later the call may end between a question and its answer
    putting.result()
    assert [q.get(), q.get(), q.qsize()] == [1, 2, 0]


@pytest.mark.usefixtures("world")
def test_a_large_item_over_a_slow_link_is_sent_once(own_postgres, proxies, name, monkeypatch):
    asked = asking_soon(monkeypatch)
    monkeypatch.setattr(wire, "GRACE", 0.1)
    url = proxies(own_postgres, slow=True).url_at("postgresql", "/postgres?user=worker")
    Queue(name=name, url=url, reconnect=0.5).put(bytes(3_000_000))
    assert any(asked)
    assert len(Queue(name=name, url=own_postgres.limited_url).get()) == 3_000_000
