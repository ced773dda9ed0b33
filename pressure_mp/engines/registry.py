"""All engines: reads a URL into an address, and makes the engine of an address. The modules of an
engine are imported when first used."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from .. import greenlets as greenlets
from .. import lifecycle
from ..exceptions import AddressError, ArgumentTypeError
from ..hidden import hide, without_frames
from ..urls import Url
from .contract.address import DEFAULT_PREFIX, Address
from .contract.session import Engine


class _Kind(NamedTuple):
    """The module below this package whose ``parse`` reads the URLs, the callable that makes the
    engine of an address, and the environment variables that either reads."""

    address: str
    engine: str
    variables: tuple[str, ...] = ()


_REDIS = _Kind(
    "redis.address",
    "redis.engine:RedisEngine",
    ("REDIS_SERVER", "REDIS_PORT", "REDIS_DB", "PRESSURE_ALLOW_EVICTION"),
)
_SENTINEL = _REDIS._replace(engine="redis.sentinel:SentinelEngine")
_CLUSTER = _REDIS._replace(engine="redis.cluster:ClusterEngine")

_KINDS = {
    "redis": _REDIS,
    "rediss": _REDIS,
    "unix": _REDIS,
    "redis+sentinel": _SENTINEL,
    "rediss+sentinel": _SENTINEL,
    "redis+cluster": _CLUSTER,
    "rediss+cluster": _CLUSTER,
    "memory": _Kind("memory.address", "memory.engine:MemoryEngine"),
    "postgresql": _Kind("postgres.address", "postgres.engine:PostgresEngine"),
    "sqlite": _Kind("sqlite.address", "sqlite.engine:SqliteEngine"),
    "foundationdb": _Kind("foundationdb.address", "foundationdb.store:FoundationEngine"),
    "embedded": _Kind("embedded.address", "embedded.engine:start", _REDIS.variables),
}

_VARIABLES = {"PRESSURE_URL", "PRESSURE_PREFIX"}.union(
    *(kind.variables for kind in _KINDS.values())
)

#: The kind of broker that is used when no URL is given.
_DEFAULT = _REDIS

_NOTHING_SAID: Mapping[str, str] = MappingProxyType({})

_lock = threading.RLock()
_open: dict[Address, Engine] = {}


def resolve(
    url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    db: int | None = None,
    prefix: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Address:
    """Find the address that the arguments and the environment name (specification: Message
    Brokers).

    An argument wins over the environment, ``url`` and ``PRESSURE_URL`` over ``REDIS_SERVER``,
    ``REDIS_PORT`` and ``REDIS_DB``. Raises AddressError for an address that it cannot read, and
    when ``url`` comes together with ``host``, ``port`` or ``db``. Does no I/O.
    """
    parts = {"host": host, "port": port, "db": db}
    given = [name for name, value in parts.items() if value is not None]
    if url is not None and given:
        raise AddressError(f"give either url or {', '.join(given)}, not both")
    found = {name: environ[name] for name in _VARIABLES if name in environ}
    if "PRESSURE_URL" in found:
        found["PRESSURE_URL"] = hide(found["PRESSURE_URL"])
    del environ  # a traceback with local variables would show all of it
    prefix = found.get("PRESSURE_PREFIX", DEFAULT_PREFIX) if prefix is None else prefix
    if not isinstance(prefix, str):
        raise ArgumentTypeError(f"prefix is a str, not {type(prefix).__name__}")
    if url is None and not given:
        url = found.get("PRESSURE_URL")
        origin = "from PRESSURE_URL"
    else:
        origin = "from the argument url"
    url = hide(url)
    if url is not None:
        return parse(url, prefix, found, origin)
    return cast(Address, _module(_DEFAULT.address).of_parts(host, port, db, prefix, found))


def parse(
    url: str,
    prefix: str = DEFAULT_PREFIX,
    variables: Mapping[str, str] = _NOTHING_SAID,
    origin: str = "",
) -> Address:
    """Read a broker's URL. ``variables`` is the environment; ``origin`` says in errors where the
    URL is from. Raises AddressError, without showing a password."""
    if not isinstance(url, str):
        raise ArgumentTypeError(f"url is a str, not {type(url).__name__}")
    url = hide(url)
    try:
        return _parse(Url(str(url), origin), prefix, variables)
    except AddressError as error:
        raise without_frames(error) from None


def _parse(url: Url, prefix: str, variables: Mapping[str, str]) -> Address:
    """Parse in a frame of its own, which is left out of the error's: it has the password."""
    kind = _KINDS.get(url.scheme)
    if kind is None:
        raise AddressError(f"no engine for {url.shown!r}: use one of {', '.join(_KINDS)}")
    return cast(Address, _module(kind.address).parse(url, prefix, variables))


def engine(address: Address) -> Engine:
    """Return the engine of a started address; a process has one for each address."""
    with _lock:  # a signal handler may ask in the midst of this
        found = _open.get(address)
        if found is None:
            module, _, name = _KINDS[address.scheme].engine.partition(":")
            found = _open.setdefault(address, getattr(_module(module), name)(address))
            lifecycle.begin_use()
        return found


def _module(name: str) -> Any:
    lifecycle.import_late()
    return import_module(f".{name}", __package__)


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for opened in _open.values():
        opened.after_fork()


def _close_idle() -> None:
    # Keep one connection: a finalizer that puts an item when modules are taken apart can make none.
    for opened in list(_open.values()):
        opened.close(kept=1)


lifecycle.register("close connections", _after_fork_in_child)
lifecycle.register("close connections at the end", _close_idle)
