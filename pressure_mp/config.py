"""Where a broker is: arguments, a URL and the environment become one :class:`Address`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, unquote_plus, urlsplit

from .exceptions import AddressError, ArgumentTypeError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 6379
DEFAULT_PREFIX = "__pressure__"

_ESCAPE = "a username or password in it has one of /?#[]@, to be written as %2F%3F%23%5B%5D%40"


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
        """The address as a URL, without the password and without options that are passwords."""
        shown = [option for option in self.query.split("&") if not _is_secret(option)]
        query = f"?{'&'.join(shown)}" if any(shown) else ""
        if self.scheme in ("redis", "rediss"):
            user = f"{quote(self.username, safe='')}@" if self.username else ""
            host = f"[{self.host}]" if ":" in self.host else self.host
            return f"{self.scheme}://{user}{host}:{self.port}/{self.db}{query}"
        if self.scheme == "unix":
            options = "&".join(filter(None, [f"db={self.db}" if self.db else "", *shown]))
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
    split = _split(url)
    if split is None:
        raise AddressError(
            f"broker URL {_hide(url)!r} cannot be read: its port is no number, or {_ESCAPE}"
        )
    parts, port = split
    if not parts.scheme or "://" not in url:
        raise AddressError(f"broker URL {_hide(url)!r} has no scheme, such as redis://")
    if _is_cut(parts):
        raise AddressError(f"broker URL {_hide(url)!r} cannot be read: {_ESCAPE}")
    db, username, password, query = _options(parts, url)
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
            "username": unquote(parts.username) if parts.username else username,
            "password": unquote(parts.password) if parts.password else password,
            "query": query,
            "prefix": prefix,
        }
    )


def _split(url: str) -> tuple[SplitResult, int | None] | None:
    """The parts and the port; None when there is an error, whose text can show a password."""
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        return None


def _options(parts: SplitResult, url: str) -> tuple[int, str | None, str | None, str]:
    """Database, username and password, which an option can name too; and the other options."""
    named: dict[str, str] = {}
    others = []
    for option in filter(None, parts.query.split("&")):
        name, _, value = option.partition("=")
        if name in ("db", "username", "password"):
            named[name] = unquote_plus(value)
        else:
            others.append(option)
    path = parts.path.strip("/") if parts.scheme in ("redis", "rediss") else ""
    db = named.get("db", path)
    if db and not db.isdecimal():
        raise AddressError(f"broker URL {_hide(url)!r}: database {db!r} is not a number")
    return int(db or 0), named.get("username"), named.get("password"), "&".join(others)


def _is_cut(parts: SplitResult) -> bool:
    """Whether a character of a password ended the part of the URL that it belongs to."""
    if parts.scheme not in ("redis", "rediss"):
        return False
    names = [option.partition("=")[0] for option in parts.query.split("&")]
    return bool(parts.fragment) or "@" in parts.path or any("@" in name for name in names)


def _is_secret(option: str) -> bool:
    return "password" in option.partition("=")[0]


def _hide(url: str) -> str:
    """What may be shown of a URL that cannot be read: no options, and of a login nothing."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    shown, _, options = rest.partition("?")
    if "@" in shown:
        shown = f"…@{shown.rpartition('@')[2]}"
    elif "@" in options:
        shown = "…"
    return f"{scheme}{separator}{shown}"
