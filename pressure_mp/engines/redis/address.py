"""Addresses of servers: from a URL, or from arguments and the environment (specification: Message
Brokers)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from ... import urls
from ...exceptions import AddressError
from ...hidden import hide_in
from ...urls import Url
from ..contract.address import DEFAULT_PREFIX, UNTOLD, Capabilities, Endpoint, Origin

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 6379

_TCP = ("redis", "rediss")
_SENTINEL = ("redis+sentinel", "rediss+sentinel")
_CLUSTER = ("redis+cluster", "rediss+cluster")
#: The schemes whose URLs name several hosts, and the default port of these.
_PORTS = {**dict.fromkeys(_SENTINEL, 26379), **dict.fromkeys(_CLUSTER, DEFAULT_PORT)}

#: Options of URLs for redis-py. The last four are in the URLs of many programs, and have no effect
#: here: an operation has its own time limit, and repeats its calls itself.
_OPTIONS = (
    *("socket_connect_timeout", "socket_read_size", "client_name"),
    *("socket_timeout", "retry_on_timeout", "health_check_interval", "decode_responses"),
)
_TLS_OPTIONS = (
    *("ssl_ca_certs", "ssl_ca_path", "ssl_ca_data", "ssl_certfile", "ssl_keyfile", "ssl_password"),
    *("ssl_cert_reqs", "ssl_check_hostname", "ssl_min_version", "ssl_ciphers"),
)
_OWN_OPTIONS = ("db", "username", "password", "allow_eviction")
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")

_CAPABILITIES = Capabilities(persistent=True, durable=True, takes_at_a_time=8)


class RedisAddress(NamedTuple):
    """The address of one server, or of the servers of a service or a cluster."""

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
    #: Of equal addresses, the engine has the origin of the first.
    origin: Origin = UNTOLD

    @property
    def url(self) -> str:
        shown = [one for one in self.query.split("&") if one and not urls.is_secret(one)]
        if self.allow_eviction:
            shown.append("allow_eviction=1")
        user = f"{quote(self.username, safe='')}@" if self.username else ""
        if self.scheme in _TCP:
            path = f"{user}{urls.join(self.host, self.port)}/{self.db}"
        elif self.nodes:
            path = user + ",".join(urls.join(host, port) for host, port in self.nodes)
            if self.service:
                path += f"/{quote(self.service, safe='')}/{self.db}"
            if self.sentinel_username:
                shown.append(f"sentinel_username={quote(self.sentinel_username, safe='')}")
        else:
            path = quote(self.path)
            if self.db:
                shown.insert(0, f"db={self.db}")
        return f"{self.scheme}://{path}" + (f"?{'&'.join(shown)}" if shown else "")

    @property
    def endpoint(self) -> Endpoint | None:
        if self.scheme in _TCP:
            return Endpoint(self.host, self.port)
        return Endpoint(self.path) if self.path else None

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def started(self) -> RedisAddress:
        return self

    @property
    def is_default(self) -> bool:
        """Whether this is the address that is used when none is given."""
        return (self.scheme, self.host, self.port) == ("redis", DEFAULT_HOST, DEFAULT_PORT)

    def __repr__(self) -> str:
        return f"RedisAddress({self.url!r}, prefix={self.prefix!r})"


def of_parts(
    host: str | None,
    port: int | None,
    db: int | None,
    prefix: str,
    variables: Mapping[str, str],
) -> RedisAddress:
    """Make the address of the server that the arguments name, or else the environment. Raises
    AddressError."""
    origin = _origin(host, port, db, variables)
    return RedisAddress(
        scheme="redis",
        host=variables.get("REDIS_SERVER", DEFAULT_HOST) if host is None else host,
        port=_number("port", port, variables, DEFAULT_PORT),
        db=_number("db", db, variables, 0),
        prefix=prefix,
        allow_eviction=_allows_eviction(variables),
        origin=origin,
    )


def _number(what: str, given: object, variables: Mapping[str, str], default: int) -> int:
    """Read a port or a database: from the argument, or else from the environment. Raises
    AddressError."""
    if given is not None:
        return urls.number(str(given), what)
    variable = f"REDIS_{what.upper()}"
    return urls.number(variables.get(variable, str(default)), variable)


def _origin(
    host: str | None, port: int | None, db: int | None, variables: Mapping[str, str]
) -> Origin:
    """Name the argument or the variable that says where the server is."""
    found = []
    parts = {"host": (host, "REDIS_SERVER"), "port": (port, "REDIS_PORT"), "db": (db, "REDIS_DB")}
    for part, (value, variable) in parts.items():
        if value is not None:
            found.append(f"the argument {part}")
        elif variable in variables:
            found.append(variable)
    return Origin(f"from {', '.join(found)}" if found else "the default address")


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> RedisAddress:
    """Read a URL. The environment can allow eviction for any URL. Raises AddressError."""
    if url.scheme in (*_TCP, *_PORTS):
        url.check_whole()
    service, path = "", url.path.strip("/")
    if url.scheme in _SENTINEL:
        service, _, path = path.partition("/")
    if url.scheme in _PORTS:
        nodes = url.hosts(DEFAULT_HOST, _PORTS[url.scheme])
        found = settings(url, prefix, variables, path)
        found = found._replace(nodes=nodes, service=unquote(service))
    elif url.scheme in _TCP:
        hosts = url.hosts(DEFAULT_HOST, DEFAULT_PORT)
        if len(hosts) > 1:
            raise url.error(
                "names several hosts: that is for redis+sentinel:// and redis+cluster://"
            )
        host, port = hosts[0] if hosts else (DEFAULT_HOST, DEFAULT_PORT)
        found = settings(url, prefix, variables, path)._replace(host=host, port=port)
    else:
        found = settings(url, prefix, variables)._replace(path=unquote(url.path))
    if problem := _problem(found):
        raise url.error(problem)
    return found


def settings(
    url: Url, prefix: str, variables: Mapping[str, str], database: str = ""
) -> RedisAddress:
    """Read the options of a URL: all of it but the hosts. ``database`` is the path, which an option
    may override. Raises AddressError."""
    own = (*_OWN_OPTIONS, *(_SENTINEL_OPTIONS if url.scheme in _SENTINEL else ()))
    redis_py = (*_OPTIONS, *(_TLS_OPTIONS if url.scheme.startswith("rediss") else ()))
    url.check_options((*own, *redis_py))
    named = hide_in(url.take(*own))
    allows = urls.yes_or_no(named.get("allow_eviction", "0"), "allow_eviction in a broker's URL")
    database = named.get("db", database)
    if database and not database.isdecimal():
        raise AddressError(f"broker URL {url.shown!r}: database {database!r} is not a number")
    return RedisAddress(
        scheme=url.scheme,
        db=int(database or 0),
        username=url.username or named.get("username") or None,
        password=url.password or named.get("password") or None,
        query=url.query,
        prefix=prefix,
        sentinel_username=named.get("sentinel_username") or None,
        sentinel_password=named.get("sentinel_password") or None,
        allow_eviction=allows or _allows_eviction(variables),
        origin=Origin(url.origin),
    )


def _problem(address: RedisAddress) -> str | None:
    """Name what the scheme needs and the address lacks, or has and may not have."""
    scheme = address.scheme
    if scheme == "unix" and not address.path:
        return "names no socket: unix:///path/to/socket"
    if scheme in _PORTS and not address.nodes:
        return f"names no host: {scheme}://host1:port,host2:port"
    if scheme in _SENTINEL and not address.service:
        return f"names no service: {scheme}://host:26379/service"
    if scheme in _CLUSTER and address.db:
        return f"names database {address.db}; a cluster has database 0 only"
    return None


def _allows_eviction(variables: Mapping[str, str]) -> bool:
    allowed = variables.get("PRESSURE_ALLOW_EVICTION", "")
    return bool(allowed) and urls.yes_or_no(allowed, "PRESSURE_ALLOW_EVICTION")
