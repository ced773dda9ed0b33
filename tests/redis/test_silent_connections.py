"""A connection that swallows all that is sent, while its server answers over other connections: a
call that waits is served all the same, once."""

from __future__ import annotations

import contextlib
import struct

import pytest
from brokers.breaking import REPLIES, REQUESTS
from inside import replies_of
from waiting import HOURS, Background, until

from pressure_mp import JoinableQueue, Queue, TaskQueue
from pressure_mp.engines.redis import blocking_wire, loop_wire, silence

#: How each kind of call waits, through the proxy; and what then serves it, past the proxy.
CALLS = {
    "get": (
        lambda name, url: Queue(name=name, url=url).get(),
        lambda name, url: Queue(name=name, url=url).put("item"),
        "item",
    ),
    "get with a timeout": (
        lambda name, url: Queue(name=name, url=url).get(timeout=HOURS),
        lambda name, url: Queue(name=name, url=url).put("item"),
        "item",
    ),
    "get of a JoinableQueue": (
        lambda name, url: JoinableQueue(name=name, url=url).get(),
        lambda name, url: JoinableQueue(name=name, url=url).put("item"),
        "item",
    ),
    "put that waits for space": (
        lambda name, url: [Queue(1, name=name, url=url).put(item) for item in (1, 2)],
        lambda name, url: Queue(1, name=name, url=url).get(),
        [None, None],
    ),
    "join": (
        lambda name, url: _put_and_join(JoinableQueue(name=name, url=url)),
        lambda name, url: _work(JoinableQueue(name=name, url=url)),
        "joined",
    ),
}
#: The same of what there is once for both worlds.
TASKS = {
    "take": (
        lambda name, url: TaskQueue(name, url=url).take().data,
        lambda name, url: TaskQueue(name, url=url).put("item"),
        "item",
    ),
    "result": (
        lambda name, url: _put_and_wait(TaskQueue(name, url=url)),
        lambda name, url: TaskQueue(name, url=url).take().ack(result="done"),
        "done",
    ),
}


def _put_and_join(q):
    q.put(1)
    q.join()
    return "joined"


def _work(q):
    q.get()
    q.task_done()


def _put_and_wait(tasks):
    return tasks.result(tasks.put(1, result_ttl=600))


class Round:
    """One call that waits, of whose connections one falls silent one way."""

    def __init__(self, server, proxy, name, call, which, way):
        self.waiting, self.serving, self.expected = call
        self.server, self.proxy, self.name = server, proxy, name
        self.which, self.way = which, way

    def __call__(self):
        waits = Background(self.waiting, self.name, self.proxy.url)
        until(lambda: self.proxy.links)
        # It has looked beside its wait once, so that all its connections are there.
        until(lambda: len(self.proxy.links) > 1 or self._is_quiet())
        with contextlib.suppress(IndexError):
            self.proxy.links[self.which].silent.add(self.way)
        self.serving(self.name, self.server.url)
        assert waits.result() == self.expected, (self.name, self.which, self.way)

    def _is_quiet(self):
        link = self.proxy.links[0]
        return len(link.ends[REPLIES]) > 6


def run(server, proxies, name, calls, way):
    rounds = [
        Background(Round(server, proxies(server), f"{name}-{number}-{which}", call, which, way))
        for number, call in enumerate(calls.values())
        for which in (0, 1)
    ]
    for one in rounds:
        one.result(100)


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("way", [REQUESTS, REPLIES])
def test_a_call_that_waits_is_served_although_a_connection_is_silent(server, proxies, name, way):
    run(server, proxies, name, CALLS, way)


@pytest.mark.parametrize("way", [REQUESTS, REPLIES])
def test_a_wait_for_a_task_or_a_result_is_served_although_a_connection_is_silent(
    server, proxies, name, way
):
    run(server, proxies, name, TASKS, way)


@contextlib.contextmanager
def _paused(server):
    server.client().client_pause(1000 * 3600, all=False)
    try:
        yield
    finally:
        server.client().client_unpause()


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("how", ["stopped", "paused"])
def test_a_server_that_answers_over_no_connection_is_waited_for(own_server, name, monkeypatch, how):
    """It is asked meanwhile, and the call is made once."""
    asked = replies_of(monkeypatch, silence, "_answers")
    q = Queue(name=name, url=own_server.url, reconnect=0.5)
    q.put(1)
    with own_server.stopped() if how == "stopped" else _paused(own_server):
        putting = Background(q.put, 2)
        until(lambda: asked)
        assert putting.is_alive()
    putting.result()
    assert not any(asked)
    assert [q.get(), q.get(), q.qsize()] == [1, 2, 0]


@pytest.mark.usefixtures("world")
def test_a_large_item_over_a_slow_link_is_sent_once(server, proxies, name, monkeypatch):
    """The server answers over another connection meanwhile: this one is slow, and not silent."""
    for module in (silence, blocking_wire, loop_wire):
        for limit in {"SILENCE", "PAUSE", "GRACE"} & set(vars(module)):
            monkeypatch.setattr(module, limit, 0.1)
    monkeypatch.setattr(blocking_wire, "_SILENT", struct.pack("ll", 0, 100_000))
    answered = replies_of(monkeypatch, silence.Health, "has_answered")
    q = Queue(name=name, url=proxies(server, slow=True).url, reconnect=0.5)
    q.put(bytes(3_000_000))
    assert any(answered)
    assert len(Queue(name=name, url=server.url).get()) == 3_000_000
