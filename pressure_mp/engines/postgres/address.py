"""Addresses of queues in PostgreSQL: a database, and a schema in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import quote, unquote

from ... import urls
from ...exceptions import AddressError
from ...hidden import hide
from ...urls import Url
from ..contract.address import DEFAULT_PREFIX, Capabilities, Endpoint

DEFAULT_SCHEMA = "pressure_mp"

_CAPABILITIES = Capabilities(persistent=True, durable=True, relaxed=True)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
#: A host, or the directory of a socket, and its port.
_ONE_HOST = re.compile(r"(\[[^],]+\]|[^:,]+)(?::(\d+))?")
#: Schemas in which other programs keep things.
_NOT_OWN = re.compile(r"public|information_schema|pg_.*")
SCHEMA_LETTERS = (
    "up to 63 lower case letters, digits and _, and is not public, information_schema or pg_…"
)


class PostgresAddress(NamedTuple):
    """A schema of a database."""

    scheme: str
    #: The hosts as in a URL, with commas between several.
    hosts: str = ""
    database: str = ""
    username: str | None = None
    password: str | None = None
    #: Further options of libpq, as in a URL's query.
    query: str = ""
    prefix: str = DEFAULT_PREFIX
    schema: str = DEFAULT_SCHEMA
    #: Whether the first use installs the schema.
    create: bool = False
    #: The host from which notifications come, if not from ``hosts``; ``no`` for none.
    listen: str = ""
    #: Whether statements are prepared.
    prepare: bool = True

    @property
    def url(self) -> str:
        user = f"{quote(self.username, safe='')}@" if self.username else ""
        shown = [one for one in self.query.split("&") if one and not urls.is_secret(one)]
        if self.schema != DEFAULT_SCHEMA:
            shown.append(f"schema={self.schema}")
        if self.create:
            shown.append("create=1")
        if self.listen:
            shown.append(f"listen={quote(self.listen, safe=':,[]')}")
        if not self.prepare:
            shown.append("prepare=0")
        text = f"{self.scheme}://{user}{self.hosts}/{quote(self.database)}"
        return text + (f"?{'&'.join(shown)}" if shown else "")

    @property
    def endpoint(self) -> Endpoint | None:
        found = _ONE_HOST.fullmatch(self.hosts)
        if found is None:
            return None
        host, port = found.groups()
        return Endpoint(unquote(host).strip("[]"), int(port) if port else None)

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def started(self) -> PostgresAddress:
        return self

    def conninfo(self, hosts: str | None = None) -> str:
        login = ""
        if self.username or self.password:
            login = quote(self.username or "", safe="")
            if self.password:
                login += f":{quote(self.password, safe='')}"
            login += "@"
        place = self.hosts if hosts is None else hosts
        query = f"?{self.query}" if self.query else ""
        text: str = hide(f"postgresql://{login}{place}/{quote(self.database)}{query}")
        return text

    def __repr__(self) -> str:
        return f"PostgresAddress({self.url!r}, prefix={self.prefix!r})"


def is_schema(name: str) -> bool:
    """Tell whether a schema may have this name; not every name of PostgreSQL may be used."""
    return _SCHEMA.fullmatch(name) is not None and _NOT_OWN.fullmatch(name) is None


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> PostgresAddress:
    """Read a URL. Raises AddressError."""
    if find_spec("psycopg") is None:
        raise url.error("needs psycopg: pip install 'pressure_mp[postgres]'")
    url.check_whole()
    if "/" in url.path.strip("/"):
        raise url.error("names more than a database: postgresql://user@host/database")
    own = url.take("schema", "create", "listen", "prepare")
    schema = own.get("schema", DEFAULT_SCHEMA)
    if not is_schema(schema):
        raise url.error(f"names a schema that queues cannot have: its name has {SCHEMA_LETTERS}")
    if "\0" in prefix:
        raise AddressError(f"prefix {prefix!r} has a zero character, which PostgreSQL cannot keep")
    return PostgresAddress(
        scheme=url.scheme,
        hosts=url.place,
        database=unquote(url.path.strip("/")),
        username=url.username,
        password=url.password,
        query=url.query,
        prefix=prefix,
        schema=schema,
        create=urls.yes_or_no(own.get("create", "0"), "create in a PostgreSQL URL"),
        listen=own.get("listen", ""),
        prepare=urls.yes_or_no(own.get("prepare", "1"), "prepare in a PostgreSQL URL"),
    )
