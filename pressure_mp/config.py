"""Where a broker is: arguments, a URL and the environment become one :class:`Address`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, urlsplit

from .exceptions import AddressError, ArgumentTypeError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 6379
DEFAULT_PREFIX = "__pressure__"


@dataclass(frozen=True)
class Address:
    """A broker and a key prefix on it. Two equal addresses share one engine."""

    scheme: str
    host: str = ""
    port: int = 0
    path: str = ""
    db: int = 0
    username: str | None = None
    password: str | None = None
    query: str = ""
    prefix: str = DEFAULT_PREFIX

    @property
    def url(self) -> str:
        """The address as a URL, without the password."""
        query = f"?{self.query}" if self.query else ""
        if self.scheme in ("redis", "rediss"):
            user = f"{quote(self.username, safe='')}@" if self.username else ""
            host = f"[{self.host}]" if ":" in self.host else self.host
            return f"{self.scheme}://{user}{host}:{self.port}/{self.db}{query}"
        if self.scheme == "unix":
            options = "&".join(filter(None, [f"db={self.db}" if self.db else "", self.query]))
            return f"unix://{quote(self.path)}" + (f"?{options}" if options else "")
        return f"{self.scheme}://{self.host}{quote(self.path)}{query}"

    @property
    def is_default(self) -> bool:
        """Whether nobody said where the broker is."""
        return (self.scheme, self.host, self.port) == ("redis", DEFAULT_HOST, DEFAULT_PORT)

    def __repr__(self) -> str:
        return f"Address({self.url!r}, prefix={self.prefix!r})"


def resolve(
    url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    db: int | None = None,
    prefix: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Address:
    """The address that the arguments and the environment name (specification: Message Brokers).

    An argument wins over the environment, ``url`` and ``PRESSURE_URL`` over ``REDIS_SERVER``,
    ``REDIS_PORT`` and ``REDIS_DB``. Raises AddressError on what cannot be understood, and when
    ``url`` comes together with ``host``, ``port`` or ``db``.
    """
    parts = {"host": host, "port": port, "db": db}
    given = [name for name, value in parts.items() if value is not None]
    if url is not None and given:
        raise AddressError(f"give either url or {', '.join(given)}, not both")
    prefix = environ.get("PRESSURE_PREFIX", DEFAULT_PREFIX) if prefix is None else prefix
    if not isinstance(prefix, str):
        raise ArgumentTypeError(f"prefix is a str, not {type(prefix).__name__}")
    if url is None and not given:
        url = environ.get("PRESSURE_URL")
    if url is not None:
        return parse_url(url, prefix)
    return Address(
        scheme="redis",
        host=environ.get("REDIS_SERVER", DEFAULT_HOST) if host is None else host,
        port=_number(port, "REDIS_PORT", environ, DEFAULT_PORT),
        db=_number(db, "REDIS_DB", environ, 0),
        prefix=prefix,
    )


def _number(value: int | None, variable: str, environ: Mapping[str, str], default: int) -> int:
    if value is not None:
        return value
    text = environ.get(variable, str(default))
    if not text.isdecimal():
        raise AddressError(f"{variable} is {text!r}, which is not a number")
    return int(text)


def parse_url(url: str, prefix: str = DEFAULT_PREFIX) -> Address:
    """Read a broker's URL. Raises AddressError, without showing a password."""
    if not isinstance(url, str):
        raise ArgumentTypeError(f"url is a str, not {type(url).__name__}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressError(f"broker URL {_hide(url)!r} cannot be read: {error}") from None
    if not parts.scheme or "://" not in url:
        raise AddressError(f"broker URL {_hide(url)!r} has no scheme, such as redis://")
    db, query = _database(parts, url)
    if parts.scheme in ("redis", "rediss"):
        address = Address(
            parts.scheme,
            host=unquote(parts.hostname or DEFAULT_HOST),
            port=DEFAULT_PORT if port is None else port,
        )
    else:
        address = Address(
            parts.scheme, host=parts.netloc.rpartition("@")[2], path=unquote(parts.path)
        )
        if parts.scheme == "unix" and not address.path:
            raise AddressError(f"broker URL {_hide(url)!r} names no socket: unix:///path/to/socket")
    return Address(
        **{
            **address.__dict__,
            "db": db,
            "username": unquote(parts.username) if parts.username else None,
            "password": unquote(parts.password) if parts.password else None,
            "query": query,
            "prefix": prefix,
        }
    )


def _database(parts: SplitResult, url: str) -> tuple[int, str]:
    """The database number, from the path of a redis:// URL or from ``db=``; the other options."""
    options = [option for option in parts.query.split("&") if option]
    text = parts.path.strip("/") if parts.scheme in ("redis", "rediss") else ""
    for option in options:
        if option.startswith("db="):
            text = option.removeprefix("db=")
    if text and not text.isdecimal():
        raise AddressError(f"broker URL {_hide(url)!r}: database {text!r} is not a number")
    return int(text or 0), "&".join(o for o in options if not o.startswith("db="))


def _hide(url: str) -> str:
    head, at, tail = url.rpartition("@")
    scheme, separator, _ = head.partition("://")
    return f"{scheme}{separator}…@{tail}" if at else url
