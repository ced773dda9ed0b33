"""The engine for a server of our own, which is the one for Redis."""

from __future__ import annotations

from ..redis.engine import RedisEngine
from . import launcher
from .address import EmbeddedAddress


def start(address: EmbeddedAddress) -> RedisEngine:
    """The engine for the server in a directory, which is started if it is not running. Blocks and
    raises as :func:`launcher.start_shared` does."""
    socket = launcher.start_shared(address.directory)
    return RedisEngine(address.server._replace(path=socket))
