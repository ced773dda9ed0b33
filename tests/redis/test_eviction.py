"""A server that removes keys by itself when its memory is full is refused, or warned of."""

from __future__ import annotations

import asyncio
import pickle
import warnings

import engines
import pytest
from brokers.servers import Server
from engines import Can
from waiting import Background, parks, until

from pressure_mp import (
    AddressError,
    BrokerError,
    EvictingServerError,
    EvictionWarning,
    PressureQueue,
    Queue,
    TaskQueue,
)
from pressure_mp.drivers import adrive
from pressure_mp.engines import registry
from pressure_mp.engines.contract.queues import How
from pressure_mp.engines.redis import eviction
from pressure_mp.operations.items import ItemOperations

LIMIT = ("--maxmemory", "100mb")
EVICTING = ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl"]

USES = {
    "Queue": lambda url: Queue(name="jobs", url=url).open(),
    "an anonymous queue": lambda url: Queue(url=url),
    "PressureQueue": lambda url: PressureQueue("jobs", url=url).create(),
    "TaskQueue": lambda url: TaskQueue("jobs", url=url).open(),
}


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch):
    """What this process knows of an earlier server at a port is forgotten."""
    monkeypatch.setattr(eviction, "_asked", set())


@pytest.fixture
def start(request):
    """Starts a server with these settings."""

    def start(*options, kind="redis", port=0):
        server = Server(kind, options, port=port)
        request.addfinalizer(server.stop)
        return server.start()

    return start


@pytest.mark.parametrize("kind", engines.kinds(Can.PROTOCOL))
@pytest.mark.parametrize("policy", EVICTING)
def test_a_server_that_removes_keys_by_itself_is_refused(start, kind, policy):
    server = start(*LIMIT, "--maxmemory-policy", policy, kind=kind)
    for use in USES.values():
        with pytest.raises(EvictingServerError) as caught:
            use(server.url)
        assert isinstance(caught.value, BrokerError)
        for part in (server.url, policy, "noeviction", "allow_eviction=1"):
            assert part in str(caught.value)
    with server.client() as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize("idle", [True, False])
def test_a_server_that_removes_keys_since_it_was_started_again_is_refused(start, idle):
    server = start()
    q = Queue(name="jobs", url=server.url)
    q.put(1)
    getting = None if idle else Background(lambda: [q.get(), q.get()])
    if getting is not None:
        until(lambda: parks(getting))
    server.stop()
    start(*LIMIT, "--maxmemory-policy", "allkeys-lru", port=server.port)
    with pytest.raises(EvictingServerError):
        q.put(2) if getting is None else getting.result()


def test_a_server_that_removes_keys_is_refused_under_asyncio_too(start):
    server = start(*LIMIT, "--maxmemory-policy", "allkeys-lru")
    binding = registry.engine(registry.parse(server.url)).bind("jobs", "fifo")

    async def open_it():
        await adrive(ItemOperations("jobs", "fifo").open(How.OPEN, 0), binding.asession())

    with pytest.raises(EvictingServerError):
        asyncio.run(open_it())


def test_a_refused_server_is_used_once_its_eviction_policy_is_put_right(start):
    server = start(*LIMIT, "--maxmemory-policy", "allkeys-lru")
    with pytest.raises(EvictingServerError):
        Queue(name="jobs", url=server.url).open()
    with server.client() as client:
        client.config_set("maxmemory-policy", "noeviction")
    Queue(name="jobs", url=server.url).put(1)


@pytest.mark.parametrize(
    "options",
    [(*LIMIT, "--maxmemory-policy", "noeviction"), ("--maxmemory-policy", "allkeys-lru")],
    ids=["no eviction", "no limit"],
)
def test_a_server_that_removes_nothing_is_used_without_a_word(start, options):
    server = start(*options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Queue(name="jobs", url=server.url).put(1)


def test_a_program_that_allows_it_is_warned_once(start, monkeypatch):
    server = start(*LIMIT, "--maxmemory-policy", "allkeys-lru")
    url = f"{server.url}/0?allow_eviction=1"
    with pytest.warns(EvictionWarning, match="allkeys-lru"):
        q = Queue.create("jobs", url=url)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q.put(1)
        assert Background(q.get).result() == 1
        TaskQueue("tasks", url=url).open()
    assert "allow_eviction=1" in q.url
    copy = pickle.loads(pickle.dumps(q))
    assert copy.qsize() == 0
    monkeypatch.setenv("PRESSURE_ALLOW_EVICTION", "1")
    assert Queue(name="jobs", url=server.url).url == q.url


def test_a_server_is_asked_once_by_a_process(start, no_looks):
    server = start()
    q = Queue(name="jobs", url=server.url)
    q.open()
    waiting = [Background(q.get) for _ in range(5)]
    for number in range(5):
        q.put(number)
    for one in waiting:
        one.result()
    with server.client() as client:
        assert client.info("commandstats")["cmdstat_info"]["calls"] == 1


@pytest.mark.parametrize("hidden", ["by rights", "by name"])
def test_a_server_that_does_not_tell_is_used(start, hidden):
    options = ("--rename-command", "INFO", "") if hidden == "by name" else ()
    server = start(*LIMIT, "--maxmemory-policy", "allkeys-lru", *options)
    url = server.url
    if hidden == "by rights":
        with server.client() as client:
            client.execute_command("ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all", "-info")
        url = f"redis://app:x@127.0.0.1:{server.port}/0"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Queue(name="jobs", url=url).put(1)


def test_a_value_that_is_neither_yes_nor_no_is_an_error():
    with pytest.raises(AddressError, match="allow_eviction"):
        registry.parse("redis://localhost/0?allow_eviction=maybe")
    with pytest.raises(AddressError, match="PRESSURE_ALLOW_EVICTION"):
        registry.resolve(environ={"PRESSURE_ALLOW_EVICTION": "maybe"})
    assert not registry.parse("redis://localhost/0?allow_eviction=0").allow_eviction
    assert registry.resolve(environ={"PRESSURE_ALLOW_EVICTION": "1"}).allow_eviction
