"""Addresses of queues in the memory of this process, which have a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from ...urls import Url
from ..contract.address import DEFAULT_PREFIX, Capabilities

_CAPABILITIES = Capabilities(persistent=False, durable=False, private=True)


class MemoryAddress(NamedTuple):
    """The queues of this process with this name and prefix."""

    scheme: str = "memory"
    name: str = ""
    prefix: str = DEFAULT_PREFIX

    @property
    def url(self) -> str:
        return f"memory://{quote(self.name)}"

    @property
    def endpoint(self) -> None:
        return None

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def started(self) -> MemoryAddress:
        return self


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> MemoryAddress:
    """Read a URL. Raises AddressError for a URL with a login or options."""
    if url.has_login or url.options:
        raise url.error("has a login or options; memory:// has none")
    return MemoryAddress(name=unquote(url.place + url.path), prefix=prefix)
