"""What tests of real processes and of broken connections share."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from brokers.lossy import LossyProxy
from brokers.servers import Server
from click.testing import CliRunner
from oracle.clients import LONG_LEASE, Client

from pressure_mp.cli.app import app
from pressure_mp.engines.shared import ring_files

Handle = TypeVar("Handle")


@pytest.fixture(autouse=True)
def all_at_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about queues whose items are at the broker."""
    monkeypatch.setenv(ring_files.VARIABLE, "0")


@pytest.fixture
def proxy(server: Server) -> Iterator[LossyProxy]:
    """A way to the server on which replies can be lost."""
    proxy = LossyProxy(server.port)
    yield proxy
    proxy.stop()


@pytest.fixture
def proxy_of() -> Iterator[Callable[[Server], LossyProxy]]:
    """Makes such a way to any server."""
    with contextlib.ExitStack() as stack:

        def make(server: Server) -> LossyProxy:
            proxy = LossyProxy(server.port)
            stack.callback(proxy.stop)
            return proxy

        yield make


@pytest.fixture
def client(own_server: Server, name: str) -> Iterator[Client]:
    """A queue on a server that only this test uses. A role that was left held would come free only
    after hours."""
    client = Client(own_server.url, name, LONG_LEASE)
    client.open()
    client.engine.close()
    yield client
    client.observer.close()


@pytest.fixture
def closed_at_end() -> Iterator[Callable[[Handle], Handle]]:
    """Keeps a handle, and closes it at the end of the test, whatever is unsent."""
    kept: list[Any] = []

    def keep(handle: Handle) -> Handle:
        kept.append(handle)
        return handle

    yield keep
    for handle in kept:
        handle.cancel_join_thread()
        handle.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Any]]:
    """Starts a program with one end of a pipe; whatever is left of it at the end is killed."""
    processes = []

    def start(program: Callable[..., Any], *args: Any, method: str = "fork", **options: Any) -> Any:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context(method).Process(
            target=program, args=(there, *args), kwargs=options
        )
        process.start()
        there.close()
        processes.append(process)
        return process, here

    yield start
    for process in processes:
        if process.is_alive():
            process.kill()
        process.join()


@pytest.fixture
def remove_key(server: Server) -> Callable[[str], None]:
    """Removes a key, as a server with maxmemory-policy allkeys-lru does."""

    def remove(ending: str) -> None:
        with server.client() as client:
            assert client.delete(f"__pressure__:{ending}")

    return remove


@pytest.fixture
def call(server: Server) -> Callable[..., str]:
    """Calls the command, and returns what it wrote."""

    def call(*arguments: str, status: int = 0) -> str:
        result = CliRunner(env={"PRESSURE_URL": server.url}).invoke(app, arguments)
        assert result.exit_code == status, (result.output, result.exception)
        return result.output

    return call
