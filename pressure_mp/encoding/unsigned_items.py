"""Items that need no signature: they came from memory in which only processes of the same user can
write."""

from __future__ import annotations


class Private(bytes):
    """One of them."""

    __slots__ = ()


class Privates(list[bytes]):
    """Several."""
