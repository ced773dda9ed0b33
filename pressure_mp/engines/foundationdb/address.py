"""Addresses of queues in a cluster of FoundationDB."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from ...urls import Url
from ..contract.address import DEFAULT_PREFIX, Capabilities

_CAPABILITIES = Capabilities(persistent=True, durable=True)


class FoundationAddress(NamedTuple):
    """The queues in the cluster of one cluster file; of the default one if ``path`` is empty."""

    scheme: str = "foundationdb"
    path: str = ""
    prefix: str = DEFAULT_PREFIX

    @property
    def url(self) -> str:
        return f"foundationdb://{quote(self.path)}"

    @property
    def endpoint(self) -> None:
        return None

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def started(self) -> FoundationAddress:
        return self


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> FoundationAddress:
    """Read a URL. Raises AddressError for a URL with a login or options, for a relative path, and
    where the package of the client is not installed."""
    if url.has_login or url.options:
        raise url.error("has a login or options; foundationdb:///path has none")
    path = unquote(url.path)
    if url.place or path.endswith("/"):
        raise url.error(
            "does not name a cluster file by an absolute path: foundationdb:///etc/foundationdb/"
            "fdb.cluster; or the default one: foundationdb://"
        )
    if importlib.util.find_spec("fdb") is None:
        raise url.error("needs foundationdb: pip install 'pressure_mp[foundationdb]'")
    path = os.path.normpath("/" + path.lstrip("/")) if path else ""
    return FoundationAddress(path=path, prefix=prefix)
