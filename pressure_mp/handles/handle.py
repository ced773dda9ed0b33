"""What the handles of both worlds, that of threads and asyncio, say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..exceptions import ArgumentError, ArgumentTypeError
from ..identity.client import client_id
from .attachment import Attachment


class BaseHandle:
    """One object that refers to a queue. Nothing here asks the broker."""

    _at: Attachment
    #: What stands before the name of its class where it is shown.
    _module = ""

    @property
    def name(self) -> str:
        """The queue's name at its broker."""
        return self._at.name

    @property
    def url(self) -> str:
        """The broker's address, without a password."""
        return self._at.address.url

    @property
    def prefix(self) -> str:
        """The beginning of all key names of the queue at the broker."""
        return self._at.address.prefix

    @property
    def client_id(self) -> str:
        """The id of the calling thread at the broker: host, pid, thread, and a unique part."""
        return client_id()

    def __repr__(self) -> str:
        return f"<{self._module}{type(self).__name__} {self.name!r} at {self.url}>"


def check_forward(source: BaseHandle, queue: object, options: Mapping[str, Any]) -> None:
    """Raise ArgumentTypeError or ArgumentError if a delivery cannot be forwarded to ``queue`` with
    these options of its put."""
    if not isinstance(queue, BaseHandle) or not hasattr(queue._at, "codec"):
        raise ArgumentTypeError(
            f"forward() puts on a queue of objects or of tasks, not on a {type(queue).__name__}"
        )
    if queue._module != source._module:
        raise ArgumentTypeError(
            f"forward() from queue {source.name!r} to queue {queue.name!r} needs both handles for "
            "threads, or both of asyncio: `of` of a class of asyncio makes its handle of the other"
        )
    if "wait" in options or "connection" in options:
        raise ArgumentError("wait= and connection= cannot go with forward()")
