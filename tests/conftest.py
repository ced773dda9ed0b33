"""Fixtures that every test may use: real servers, and names that no other test has."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import engines
import hypothesis
import pytest
import random_histories
import repeating
import worlds
from brokers.breaking import BreakingProxy
from brokers.broker import Broker
from brokers.postgres import Postgres
from brokers.servers import Server
from engines import Can, Engine
from oracle.clients import LONG_LEASE, Client

from pressure_mp.background import lease_thread

#: The worlds that a test of both runs in: with the queues for threads, with the queues of asyncio.
WORLDS = os.environ.get("PRESSURE_TEST_WORLDS", "threads,asyncio").split(",")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--histories",
        type=int,
        help="how many random histories those tests draw that draw some; no test has a time limit",
    )


@pytest.hookimpl(tryfirst=True)  # Hypothesis reads its option in its own hook
def pytest_configure(config: pytest.Config) -> None:
    repeating.choose_seed(config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(repeating.Repeating(config))
    hypothesis.settings.register_profile("pressure_mp", deadline=None, print_blob=True)
    hypothesis.settings.load_profile("pressure_mp")
    random_histories.asked = config.option.histories


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if _is_possible(item) and not _is_in_vain(item)]
    if config.option.histories:
        for item in items:
            item.add_marker(pytest.mark.timeout(0), append=False)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: to look through it with each ``gc.collect()`` took a
    fifth of a second, and a tenth of the time of a whole run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=WORLDS)
def world(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[worlds.World]:
    """The test runs with the queues for threads, and again with the queues of asyncio, which it
    uses in the same way.

    In the test's module, and in its parameters, other classes stand under the same names; of one
    that the test gets elsewhere, what this returns is given it.
    """
    if request.param == "threads":
        yield worlds.World(lambda kind: kind)
        return
    for name, kind in worlds.names_to_replace(request.module).items():
        monkeypatch.setattr(request.module, name, kind)
    made = worlds.Looped.made
    yield worlds.World(worlds.replacing)
    worlds.end()
    assert worlds.Looped.made > made, "the test made no queue of asyncio"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    world = pyfuncitem.funcargs.get("world")
    if isinstance(world, worlds.World):
        for name, value in pyfuncitem.funcargs.items():
            pyfuncitem.funcargs[name] = world(value)


def _params(item: pytest.Item) -> dict[str, object]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _engines(item: pytest.Item) -> list[Engine]:
    """Those that the fixtures of a test give it."""
    return [value for value in _params(item).values() if isinstance(value, Engine)]


def _is_possible(item: pytest.Item) -> bool:
    return all(engines.serves(engine, item) for engine in _engines(item))


def _is_in_vain(item: pytest.Item) -> bool:
    """In the world of asyncio, a test of what there is not in it, or with a second kind of server:
    of that the same test for threads tells, and tests of asyncio alone."""
    params = _params(item)
    return params.get("world") == "asyncio" and (
        item.get_closest_marker("only_threads") is not None
        or any(map(worlds.is_only_for_threads, params.values()))
        or any(map(engines.repeats, _engines(item)))
    )


@pytest.fixture(scope="session")
def running() -> Iterator[engines.Running]:
    """The brokers that tests share, for the whole run."""
    found = engines.Running()
    yield found
    found.stop()


@pytest.fixture(scope="session")
def valkey(running: engines.Running) -> Server:
    """The wheel's server."""
    return running["valkey"]


@pytest.fixture(scope="session")
def debian_redis(running: engines.Running) -> Server:
    """``redis-server`` from PATH, with the user of docs/security.md."""
    return running["redis"]


@pytest.fixture(scope="session")
def postgres(running: engines.Running) -> Postgres:
    """PostgreSQL, with the role of docs/postgres.md."""
    return running.chosen("postgres")


@pytest.fixture(params=engines.able(Can.PROTOCOL), ids=str)
def server(request: pytest.FixtureRequest, running: engines.Running) -> Server:
    """Each kind of server in turn that other implementations of the protocol can use."""
    return running[request.param.name]


@pytest.fixture
def proxies() -> Iterator[Callable[..., BreakingProxy]]:
    """Makes a proxy before a server, slow or not, which ends with the test."""
    with contextlib.ExitStack() as stack:

        def make(server: Any, slow: bool = False) -> BreakingProxy:
            proxy = BreakingProxy(server.port, slow)
            stack.callback(proxy.stop)
            return proxy

        yield make


@pytest.fixture(params=engines.able(Can.PROTOCOL), ids=str)
def own_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that only this test uses: on the others a thread of an earlier test may still look
    after a queue, so that what a server counts is not what a test did."""
    with request.param.make().serving() as server:
        yield server


@pytest.fixture(params=engines.able(Can.SERVER), ids=str)
def any_server(request: pytest.FixtureRequest, running: engines.Running) -> Broker:
    """Each kind of server in turn."""
    return running[request.param.name]


@pytest.fixture(params=engines.one_of_each(Can.SERVER), ids=str)
def broker(request: pytest.FixtureRequest, running: engines.Running) -> Broker:
    """A server of each engine in turn: one kind where there are several."""
    return running[request.param.name]


@pytest.fixture
def server_url(any_server: Broker) -> str:
    """The URL of each kind of server in turn, for a user with few rights."""
    return any_server.limited_url


@pytest.fixture(params=engines.CHOSEN, ids=str)
def url(request: pytest.FixtureRequest, running: engines.Running, name: str) -> str:
    """A broker's URL, for each engine and each kind of server in turn, and a user with the rights
    in the documents, and no others."""
    return running[request.param.name].url_for(name)


@pytest.fixture(params=engines.CHOSEN, ids=str)
def full_url(request: pytest.FixtureRequest, running: engines.Running, name: str) -> str:
    """The same, of a user that may do everything."""
    return running[request.param.name].url_for(name, limited=False)


@pytest.fixture(params=engines.able(Can.SERVER), ids=str)
def client(request: pytest.FixtureRequest, running: engines.Running, name: str) -> Iterator[Client]:
    """A queue, and connections that only this test uses. A role that was left held would come free
    only after hours."""
    with running[request.param.name].alone(name) as url:
        client = Client(url, name, LONG_LEASE)
        client.open()
        client.engine.close()
        yield client
        client.engine.close()


@pytest.fixture
def collected() -> Iterator[None]:
    """The objects that a test leaves are collected while the warnings that its marks ignore are
    ignored: another test would be told of objects that are collected later."""
    yield
    gc.collect()


@pytest.fixture
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting calls of this process do not look again by themselves: only a wake-up ends a wait.

    A lease is renewed all the same, at a third of it; HOURS is one that is long enough.
    """
    engines.stop_ticks(monkeypatch)


@pytest.fixture
def no_looks() -> Iterator[None]:
    """No thread looks after queues in the background, so that only the test writes."""
    with lease_thread.looking:
        yield


@pytest.fixture
def name() -> str:
    """A queue's name that no other test has."""
    return f"test-{secrets.token_hex(8)}"
