"""Addresses of queues in a cluster of FoundationDB."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import partial

from ...urls import Url
from ..contract.address import Capabilities, SimpleAddress

#: The queues in the cluster of the cluster file of that path, or of the default one.
FoundationAddress = partial(
    SimpleAddress, "foundationdb", Capabilities(persistent=True, durable=True)
)


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> SimpleAddress:
    """Read a URL. Raises AddressError for a URL with a login or options, for a relative path, and
    where the package of the client is not installed."""
    url.check_plain("foundationdb:///path")
    path = ""
    if url.place or url.path:
        path = url.absolute_path(
            "does not name a cluster file by an absolute path: foundationdb:///etc/foundationdb/"
            "fdb.cluster; or the default one: foundationdb://"
        )
    if importlib.util.find_spec("fdb") is None:
        raise url.error("needs foundationdb: pip install 'pressure_mp[foundationdb]'")
    return FoundationAddress(path, prefix)
