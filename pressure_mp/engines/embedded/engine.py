"""The engine of an embedded server, which is the engine of Redis."""

from __future__ import annotations

from ..redis.engine import RedisEngine
from . import launcher
from .address import EmbeddedAddress


def start(address: EmbeddedAddress) -> RedisEngine:
    """Make the engine of the server in a directory, and start the server if it is not running.
    Blocks and raises as :func:`launcher.start_shared` does."""
    socket = launcher.start_shared(address.directory)
    return RedisEngine(address.server._replace(path=socket))
