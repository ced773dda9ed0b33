"""Where a broker is: arguments, a URL and the environment become one :class:`Address`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, unquote_plus, urlsplit

from .exceptions import AddressError, ArgumentTypeError
from .hidden import hide, hide_in, without_frames

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 6379
DEFAULT_PREFIX = "__pressure__"

_TCP = ("redis", "rediss")
_SENTINEL = ("redis+sentinel", "rediss+sentinel")
_CLUSTER = ("redis+cluster", "rediss+cluster")
#: The schemes whose URLs name several hosts, and the port of one that has none.
_PORTS = {**dict.fromkeys(_SENTINEL, 26379), **dict.fromkeys(_CLUSTER, DEFAULT_PORT)}

_VARIABLES = (
    "PRESSURE_URL",
    "PRESSURE_PREFIX",
    "PRESSURE_ALLOW_EVICTION",
    "REDIS_SERVER",
    "REDIS_PORT",
    "REDIS_DB",
)

_ESCAPE = "a username or password in it has one of /?#[]@, to be written as %2F%3F%23%5B%5D%40"


class Address(NamedTuple):
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
    #: Hosts and ports of sentinels, or of nodes of a cluster.
    nodes: tuple[tuple[str, int], ...] = ()
    #: The name under which sentinels watch over the servers, and the login at the sentinels.
    service: str = ""
    sentinel_username: str | None = None
    sentinel_password: str | None = None
    #: Whether to use a server that removes keys by itself when its memory is full.
    allow_eviction: bool = False

    @property
    def url(self) -> str:
        """The address as a URL, without passwords and without options that are passwords."""
        shown = [option for option in self.query.split("&") if option and not _is_secret(option)]
        if self.allow_eviction:
            shown.append("allow_eviction=1")
        user = f"{quote(self.username, safe='')}@" if self.username else ""
        if self.scheme in _TCP:
            path = f"{user}{_join(self.host, self.port)}/{self.db}"
        elif self.nodes:
            path = user + ",".join(_join(host, port) for host, port in self.nodes)
            if self.service:
                path += f"/{quote(self.service, safe='')}/{self.db}"
            if self.sentinel_username:
                shown.append(f"sentinel_username={quote(self.sentinel_username, safe='')}")
        else:
            path = f"{self.host}{quote(self.path)}"
            if self.scheme == "unix" and self.db:
                shown.insert(0, f"db={self.db}")
        return f"{self.scheme}://{path}" + (f"?{'&'.join(shown)}" if shown else "")

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
    ``url`` comes together with ``host``, ``port`` or ``db``. What is allowed with
    ``PRESSURE_ALLOW_EVICTION`` is allowed whatever names the address.
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
    url = hide(url)
    allowed = found.get("PRESSURE_ALLOW_EVICTION", "")
    allow_eviction = bool(allowed) and _yes_or_no(allowed, "PRESSURE_ALLOW_EVICTION")
    if url is not None:
        address = parse_url(url, prefix)
        return address._replace(allow_eviction=address.allow_eviction or allow_eviction)
    return Address(
        scheme="redis",
        host=found.get("REDIS_SERVER", DEFAULT_HOST) if host is None else host,
        port=_number(port, "REDIS_PORT", found, DEFAULT_PORT),
        db=_number(db, "REDIS_DB", found, 0),
        prefix=prefix,
        allow_eviction=allow_eviction,
    )


def _number(value: int | None, variable: str, found: Mapping[str, str], default: int) -> int:
    if value is not None:
        return value
    text = found.get(variable, str(default))
    if not text.isdecimal():
        raise AddressError(f"{variable} is {text!r}, which is not a number")
    return int(text)


def _yes_or_no(text: str, what: str) -> bool:
    if text not in ("0", "1"):
        raise AddressError(f"{what} is {text!r}; it is 1, or 0 for no")
    return text == "1"


def parse_url(url: str, prefix: str = DEFAULT_PREFIX) -> Address:
    """Read a broker's URL. Raises AddressError, without showing a password."""
    if not isinstance(url, str):
        raise ArgumentTypeError(f"url is a str, not {type(url).__name__}")
    url = hide(url)
    try:
        return _parse(str(url), prefix)
    except AddressError as error:
        raise without_frames(error) from None


def _parse(url: str, prefix: str) -> Address:
    read = _read(url)
    if read is None:
        raise AddressError(
            f"broker URL {_hide(url)!r} cannot be read: its port is no number, or {_ESCAPE}"
        )
    parts, place = read
    if not parts.scheme or "://" not in url:
        raise AddressError(f"broker URL {_hide(url)!r} has no scheme, such as redis://")
    if _is_cut(parts):
        raise AddressError(f"broker URL {_hide(url)!r} cannot be read: {_ESCAPE}")
    named, query = _options(parts)
    allowed = named.pop("allow_eviction", "0")
    allow_eviction = _yes_or_no(allowed, "allow_eviction in a broker's URL")
    address = Address(
        parts.scheme,
        **place,
        **{name: value for name, value in named.items() if value and name != "db"},
        db=_database(parts, named.get("db"), url),
        query=query,
        prefix=prefix,
        allow_eviction=allow_eviction,
    )
    _check(address, url)
    return address


def _read(url: str) -> tuple[SplitResult, dict[str, Any]] | None:
    """The parts of a URL, and where the broker is; None when there is an error, whose text can
    show a password."""
    try:
        parts = urlsplit(url)
        return parts, _place(parts)
    except ValueError:
        return None


def _options(parts: SplitResult) -> tuple[dict[str, Any], str]:
    """What a URL's login and its options name of an address; and the other options."""
    names = {"db", "username", "password", "allow_eviction"}
    if parts.scheme in _SENTINEL:
        names |= {"sentinel_username", "sentinel_password"}
    named: dict[str, Any] = {}
    others = []
    for option in filter(None, parts.query.split("&")):
        name, _, value = option.partition("=")
        if name in names:
            named[name] = unquote_plus(value)
        else:
            others.append(option)
    if parts.username:
        named["username"] = unquote(parts.username)
    if parts.password:
        named["password"] = unquote(parts.password)
    query = "&".join(others)
    return hide_in(named), hide(query) if any(map(_is_secret, others)) else query


def _is_cut(parts: SplitResult) -> bool:
    """Whether a character of a password ended the part of the URL that it belongs to."""
    if parts.scheme not in (*_TCP, *_PORTS):
        return False
    names = [option.partition("=")[0] for option in parts.query.split("&")]
    return bool(parts.fragment) or "@" in parts.path or any("@" in name for name in names)


def _is_secret(option: str) -> bool:
    return "password" in option.partition("=")[0]


def _place(parts: SplitResult) -> dict[str, Any]:
    """Where the broker is, as fields of an address. Raises ValueError for a bad port."""
    if parts.scheme in _PORTS:
        hosts = parts.netloc.rpartition("@")[2].split(",")
        default = _PORTS[parts.scheme]
        service = parts.path.strip("/").partition("/")[0] if parts.scheme in _SENTINEL else ""
        nodes = tuple(_split(host, default) for host in hosts if host)
        return {"nodes": nodes, "service": unquote(service)}
    port = parts.port
    if parts.scheme in _TCP:
        host = unquote(parts.hostname or DEFAULT_HOST)
        return {"host": host, "port": DEFAULT_PORT if port is None else port}
    return {"host": parts.netloc.rpartition("@")[2], "path": unquote(parts.path)}


def _split(host: str, default: int) -> tuple[str, int]:
    """One of several hosts, and its port."""
    found = urlsplit(f"//{host}")
    return unquote(found.hostname or DEFAULT_HOST), default if found.port is None else found.port


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _check(address: Address, url: str) -> None:
    """Raise AddressError for what a scheme needs, or cannot have."""
    problem = None
    if address.scheme == "unix" and not address.path:
        problem = "names no socket: unix:///path/to/socket"
    elif address.scheme in _PORTS and not address.nodes:
        problem = f"names no host: {address.scheme}://host1:port,host2:port"
    elif address.scheme in _SENTINEL and not address.service:
        problem = f"names no service: {address.scheme}://host:26379/service"
    elif address.scheme in _CLUSTER and address.db:
        problem = f"names database {address.db}; a cluster has database 0 only"
    if problem:
        raise AddressError(f"broker URL {_hide(url)!r} {problem}")


def _database(parts: SplitResult, option: str | None, url: str) -> int:
    """The database number: the option ``db=``, or the path that follows host or service."""
    path = parts.path.strip("/")
    if parts.scheme in _SENTINEL:
        path = path.partition("/")[2]
    elif parts.scheme not in (*_TCP, *_CLUSTER):
        path = ""
    text = path if option is None else option
    if text and not text.isdecimal():
        raise AddressError(f"broker URL {_hide(url)!r}: database {text!r} is not a number")
    return int(text or 0)


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
