"""Addresses of queues in a file of SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...urls import Url
from ..contract.address import Capabilities, SimpleAddress

#: The queues in the file of that path.
SqliteAddress = partial(SimpleAddress, "sqlite", Capabilities(persistent=True, durable=True))


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> SimpleAddress:
    """Read a URL. Raises AddressError for a URL with a login or options, or without an absolute
    path."""
    url.check_plain("sqlite:///path")
    path = url.absolute_path("does not name a file by an absolute path: sqlite:///path/of/the/file")
    return SqliteAddress(path, prefix)
