"""Addresses of queues in a file of SQLite."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from ...urls import Url
from ..contract.address import DEFAULT_PREFIX, Capabilities

_CAPABILITIES = Capabilities(persistent=True, durable=True)


class SqliteAddress(NamedTuple):
    """The queues in one file."""

    scheme: str = "sqlite"
    path: str = ""
    prefix: str = DEFAULT_PREFIX

    @property
    def url(self) -> str:
        return f"sqlite://{quote(self.path)}"

    @property
    def endpoint(self) -> None:
        return None

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def started(self) -> SqliteAddress:
        return self


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> SqliteAddress:
    """Read a URL. Raises AddressError for a URL with a login or options, or without an absolute
    path."""
    if url.has_login or url.options:
        raise url.error("has a login or options; sqlite:///path has none")
    path = unquote(url.path)
    if url.place or not os.path.isabs(path) or path.endswith("/"):
        raise url.error("does not name a file by an absolute path: sqlite:///path/of/the/file")
    path = os.path.normpath("/" + path.lstrip("/"))  # some write four slashes
    return SqliteAddress(path=path, prefix=prefix)
