"""Addresses of embedded servers: of one with its data in a directory, or of the private one of this
program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from ...urls import Url
from ..contract.address import Capabilities, Endpoint
from ..redis import address as redis
from ..redis.address import RedisAddress


class EmbeddedAddress(NamedTuple):
    """The server that keeps its data in ``directory``; if that is empty, the private server of this
    program. ``server`` is the address of the server without its socket."""

    scheme: str
    directory: str
    server: RedisAddress

    @property
    def prefix(self) -> str:
        return self.server.prefix

    @property
    def url(self) -> str:
        _, query, options = self.server.url.partition("?")
        return f"embedded://{quote(self.directory)}{query}{options}"

    @property
    def endpoint(self) -> Endpoint | None:
        return Endpoint(self.directory) if self.directory else None

    @property
    def capabilities(self) -> Capabilities:
        from . import launcher

        private = not self.directory and launcher.inherited_socket() is None
        return self.server.capabilities._replace(starts=True, private=private)

    def started(self) -> EmbeddedAddress | RedisAddress:
        """Start a private server, and return the address of its socket. A server with a directory
        is named by its directory, because the next process may have to start it again.

        Blocks up to 20 seconds while a server starts. Raises EmbeddedServerError.
        """
        if self.directory:
            return self
        from . import launcher

        return self.server._replace(path=launcher.start_private())

    def __repr__(self) -> str:
        return f"EmbeddedAddress({self.url!r}, prefix={self.prefix!r})"


def parse(url: Url, prefix: str, variables: Mapping[str, str]) -> EmbeddedAddress:
    """Read a URL. Raises AddressError."""
    if url.place:
        raise url.error("names a host; it may name a directory: embedded:///directory")
    server = redis.settings(url, prefix, variables)._replace(scheme="unix")
    return EmbeddedAddress(url.scheme, unquote(url.path), server)
