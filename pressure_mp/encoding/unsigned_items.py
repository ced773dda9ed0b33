"""Items that need no signature: they came from memory in which only processes of the same user can
write."""

from __future__ import annotations


class Private(bytes):
    """An item that needs no signature."""

    __slots__ = ()


class Privates(list[bytes]):
    """Items that need no signature."""
