"""Fixtures that every test may use: real servers, and names that no other test has."""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
from collections.abc import Iterator

import hypothesis
import pytest
import random_histories
import repeating
import worlds
from brokers import postgres as postgres_servers
from brokers import rights
from brokers.postgres import Postgres
from brokers.servers import Server
from oracle.clients import LONG_LEASE, Client
from waiting import HOURS

from pressure_mp.background import lease_thread
from pressure_mp.engines.memory import session as memory_session
from pressure_mp.engines.redis import binding, session, turns

#: The kinds of servers to use. The test environments of some interpreters use one of them only.
_ASKED = os.environ.get("PRESSURE_TEST_SERVERS", "valkey,redis,postgres").split(",")
#: Those that speak the protocol of Redis.
KINDS = [kind for kind in _ASKED if kind != "postgres"]
#: PostgreSQL is tested where it is installed.
_POSTGRES = ["postgres"] if "postgres" in _ASKED and postgres_servers.is_there() else []
ENGINES = ["memory", *KINDS, *_POSTGRES]
#: Whose queues run the tests of both: those for threads, those of asyncio.
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
    items[:] = [item for item in items if not _is_in_vain(item)]
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
    """The test's queues are those for threads; and then those of asyncio, which it uses like these.

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


def _is_in_vain(item: pytest.Item) -> bool:
    """In the world of asyncio, a test of what there is not in it, or with a second kind of server:
    of that the same test for threads tells, and tests of asyncio alone."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return params.get("world") == "asyncio" and (
        item.get_closest_marker("only_threads") is not None
        or any(map(worlds.is_only_for_threads, params.values()))
        or any(params.get(fixture) in KINDS[1:] for fixture in ("server", "own_server", "url"))
    )


@pytest.fixture(scope="session")
def valkey() -> Iterator[Server]:
    """The wheel's server, for the whole run."""
    server = Server("valkey")
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def debian_redis() -> Iterator[Server]:
    """``redis-server`` from PATH, for the whole run, with the user of docs/security.md."""
    server = Server("redis")
    try:
        server.start()
        with server.client() as client:
            rights.make_user(client)
        yield server
        with server.client() as client:
            assert rights.refusals(client) == set(), "docs/security.md grants too little"
    finally:
        server.stop()


def running(request: pytest.FixtureRequest, kind: str) -> Server:
    """The server of that kind, for the whole run."""
    found: Server = request.getfixturevalue({"valkey": "valkey", "redis": "debian_redis"}[kind])
    return found


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Server:
    """Each kind of real server in turn."""
    return running(request, request.param)


@pytest.fixture(params=KINDS)
def own_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that only this test uses: on the others a thread of an earlier test may still look
    after a queue, so that what a server counts is not what a test did."""
    server = Server(request.param)
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """PostgreSQL, for the whole run, with the role of docs/postgres.md."""
    if not _POSTGRES:
        pytest.skip("psycopg or PostgreSQL is not installed, or not asked for")
    with postgres_servers.serving() as server:
        yield server


def limited_url(server: Server | Postgres) -> str:
    """The URL of a server; at ``redis-server`` that of a user who has the rights in
    docs/security.md, and no others; at PostgreSQL that of such a role."""
    if isinstance(server, Postgres):
        return server.limited_url
    return server.url if server.kind == "valkey" else rights.url(server)


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, name: str) -> str:
    """A broker's URL, for each engine and each kind of server in turn; see ``limited_url``."""
    if request.param == "memory":
        return f"memory://{name}"
    if request.param == "postgres":
        return limited_url(request.getfixturevalue("postgres"))
    return limited_url(running(request, request.param))


@pytest.fixture(params=[*KINDS, *_POSTGRES])
def any_server(request: pytest.FixtureRequest) -> Server | Postgres:
    """Each kind of real server in turn, PostgreSQL among them."""
    if request.param == "postgres":
        broker: Postgres = request.getfixturevalue("postgres")
        return broker
    return running(request, request.param)


@pytest.fixture
def server_url(any_server: Server | Postgres) -> str:
    """The URL of each kind of real server in turn; see ``limited_url``."""
    return limited_url(any_server)


@pytest.fixture(params=ENGINES)
def full_url(request: pytest.FixtureRequest, name: str) -> str:
    """The same, of a user who may do everything."""
    if request.param == "memory":
        return f"memory://{name}"
    if request.param == "postgres":
        broker: Postgres = request.getfixturevalue("postgres")
        return broker.url
    return running(request, request.param).url


@pytest.fixture(params=[*KINDS, *_POSTGRES])
def client(request: pytest.FixtureRequest, name: str) -> Iterator[Client]:
    """A queue, and connections that nobody else has. A role that was left held would come free only
    after hours."""
    with contextlib.ExitStack() as stack:
        if request.param == "postgres":
            broker: Postgres = request.getfixturevalue("postgres")
            url = f"{broker.limited_url}?application_name={name}"
        else:
            server = Server(request.param)
            stack.callback(server.stop)
            url = server.start().url
        client = Client(url, name, LONG_LEASE)
        client.open()
        client.engine.close()
        yield client
        client.engine.close()


@pytest.fixture
def collected() -> Iterator[None]:
    """What a test leaves is collected while the warnings that its marks ignore are ignored: of what
    is collected later, another test is told."""
    yield
    gc.collect()


@pytest.fixture
def no_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits in this process does not look again by itself: what wakes it ends its wait.

    A lease is renewed all the same, at a third of it; HOURS is one that is long enough.
    """
    for module in (memory_session, binding, session, turns):
        monkeypatch.setattr(module, "TICK", HOURS)
    monkeypatch.setattr(turns, "FIRST_WATCH", HOURS)
    if _POSTGRES:
        from pressure_mp.engines.postgres import session as postgres_session

        monkeypatch.setattr(postgres_session, "TICK", HOURS)


@pytest.fixture
def no_looks() -> Iterator[None]:
    """In the background nobody looks after queues, so that only the test writes."""
    with lease_thread.looking:
        yield


@pytest.fixture
def name() -> str:
    """A queue's name that no other test has."""
    return f"test-{secrets.token_hex(8)}"
