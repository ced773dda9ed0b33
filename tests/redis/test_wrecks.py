"""A queue can be removed whatever its keys hold."""

from __future__ import annotations

import pytest
from waiting import LIMIT

from pressure_mp import (
    FairQueue,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    QueueDoesNotExistError,
    TaskQueue,
)
from pressure_mp.engines.redis import keys, scripts

pytestmark = pytest.mark.usefixtures("no_looks")

#: How to put a value of each type.
WRITE = {
    "string": lambda client, key: client.set(key, "x"),
    "list": lambda client, key: client.rpush(key, "x"),
    "hash": lambda client, key: client.hset(key, "x", "x"),
    "set": lambda client, key: client.sadd(key, "x"),
    "zset": lambda client, key: client.zadd(key, {"x": 1}),
    "stream": lambda client, key: client.xadd(key, {"x": "x"}),
}


def make_ordered(kind, **options):
    def make(name, url):
        q = kind(name=name, url=url, **options)
        q.put(1)
        return q

    return make


def make_protocol(name, url):
    q = PressureQueue(name, url=url)
    q.create(2)
    q.put(b"x")
    return q


def make_tasks(name, url):
    q = TaskQueue(name, url=url)
    q.put(1)
    return q


KINDS = {
    "protocol": ("fifo", make_protocol),
    "fifo": ("fifo", make_ordered(Queue)),
    "joinable": ("fifo", make_ordered(JoinableQueue)),
    "lifo": ("lifo", make_ordered(LifoQueue)),
    "priority": ("priority", make_ordered(PriorityQueue)),
    "fair": ("fair", make_ordered(FairQueue, key=lambda item: "same")),
    "tasks": ("tasks", make_tasks),
}


def parts_of(discipline):
    """All keys that a queue of this discipline may have."""
    if discipline == "tasks":
        return sorted(keys.TASKS.keys() - {"kept"})
    return sorted({*keys.PROTOCOL, *keys.OWN, *scripts.storage(discipline).keys})


def keys_of(client, name):
    return {*client.scan_iter(match=f"__pressure__*{name}*", count=1000)}


@pytest.mark.parametrize("wrong", WRITE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_with_a_key_of_another_type_can_be_deleted(server, name, kind, wrong):
    discipline, make = KINDS[kind]
    with server.client() as client:
        for number, part in enumerate(parts_of(discipline)):
            q = make(f"{name}-{number}", server.url)
            key = keys.key("__pressure__", q.name, part, discipline)
            client.delete(key)
            WRITE[wrong](client, key)
            q.delete(timeout=LIMIT) if kind != "tasks" else q.delete()
            assert keys_of(client, q.name) == set(), part


@pytest.mark.parametrize("wrong", WRITE)
def test_a_queue_with_a_key_of_another_type_can_be_deleted_without_a_wait(server, name, wrong):
    with server.client() as client:
        for number, part in enumerate(parts_of("fifo")):
            q = make_protocol(f"{name}-{number}", server.url)
            key = keys.key("__pressure__", q.name, part)
            client.delete(key)
            WRITE[wrong](client, key)
            q.delete_nowait()
            assert keys_of(client, q.name) == set(), part


@pytest.mark.parametrize("wrong", WRITE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_can_be_deleted_over_a_connection_whose_last_reply_was_spoilt(
    server, name, kind, wrong
):
    _, make = KINDS[kind]
    q = make(name, server.url)
    with server.client() as client:
        kept = [key for key in keys_of(client, name) if b"kept:" in key]
        assert kept
        for key in kept:
            client.delete(key)
            WRITE[wrong](client, key)
        q.delete()
        assert keys_of(client, name) == set()
        with pytest.raises(QueueDoesNotExistError):
            q.delete()


def test_a_queue_of_tasks_of_which_only_one_key_is_left_can_be_deleted(server, name):
    q = make_tasks(name, server.url)
    bound = keys.key("__pressure__", name, "bound", "tasks")
    with server.client() as client:
        client.delete(*(keys_of(client, name) - {bound}))
        q.delete()
        assert keys_of(client, name) == set()
