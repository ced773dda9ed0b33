"""From a URL's scheme to an engine, which is imported when it is first used."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from typing import Any

from ..config import Address
from ..exceptions import AddressError
from .contract.session import Engine

_ENGINES = {
    "redis": "pressure_mp.engines.redis.engine:RedisEngine",
    "rediss": "pressure_mp.engines.redis.engine:RedisEngine",
    "unix": "pressure_mp.engines.redis.engine:RedisEngine",
    "redis+sentinel": "pressure_mp.engines.redis.sentinel:SentinelEngine",
    "rediss+sentinel": "pressure_mp.engines.redis.sentinel:SentinelEngine",
    "redis+cluster": "pressure_mp.engines.redis.cluster:ClusterEngine",
    "rediss+cluster": "pressure_mp.engines.redis.cluster:ClusterEngine",
    "memory": "pressure_mp.engines.memory.engine:MemoryEngine",
}

_lock = threading.Lock()
_open: dict[Address, Engine] = {}


def settle(address: Address) -> Address:
    """The address that other processes can use too: an ``embedded://`` one starts its server.

    A private server is named by its socket from then on; one that is kept in a directory by the
    directory, because whoever comes next may have to start it again. Blocks up to 10 seconds
    while a server starts; raises EmbeddedServerError, and AddressError for an unknown scheme.
    """
    if address.scheme == "embedded" and not address.path:
        return address._replace(scheme="unix", path=_embedded().start_private())
    if address.scheme not in (*_ENGINES, "embedded"):
        raise AddressError(
            f"no engine for {address.url!r}: use one of {', '.join([*_ENGINES, 'embedded'])}"
        )
    return address


def engine(address: Address) -> Engine:
    """The engine for a settled address; one for each address in a process."""
    with _lock:
        found = _open.get(address)
        if found is None:
            if not _open:
                _close_at_end()
            found = _open[address] = _make(address)
        return found


def _make(address: Address) -> Engine:
    if address.scheme == "embedded":
        socket = _embedded().start_shared(address.path)
        address = address._replace(scheme="unix", path=socket)
    module, _, name = _ENGINES[address.scheme].partition(":")
    made: Engine = getattr(import_module(module), name)(address)
    return made


def _embedded() -> Any:
    return import_module("pressure_mp.engines.embedded.launcher")


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    for opened in _open.values():
        opened.after_fork()


def _close_at_end() -> None:
    """Last of all. The farewells go over these connections, and take away what was kept for them:
    atexit alone would come first where ``multiprocessing.util`` was imported before."""
    from multiprocessing.util import Finalize

    Finalize(None, _close_idle, exitpriority=-1000)


def _close_idle() -> None:
    for opened in list(_open.values()):
        opened.close()


os.register_at_fork(after_in_child=_after_fork_in_child)
