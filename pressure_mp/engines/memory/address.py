"""Addresses of queues in the memory of this process, which have a name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from urllib.parse import unquote

from ...urls import Url
from ..contract.address import Capabilities, SimpleAddress

#: The queues of this process with this name and prefix.
MemoryAddress = partial(
    SimpleAddress, "memory", Capabilities(persistent=False, durable=False, private=True)
)


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> SimpleAddress:
    """Read a URL. Raises AddressError for a URL with a login or options."""
    url.check_plain("memory://")
    return MemoryAddress(unquote(url.place + url.path), prefix)
