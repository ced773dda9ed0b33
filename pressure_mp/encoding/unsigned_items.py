"""Items that need no signature: they came from memory in which only processes of the same user can
write."""

from __future__ import annotations


class Private(bytes):
    """An item that needs no signature."""

    __slots__ = ()


class Privates(list[bytes]):
    """Items that need no signature."""


def mark_each(items: list[bytes]) -> list[bytes]:
    """Mark each of these items, if the list is marked; an item that is used by itself has to be."""
    return Privates(map(Private, items)) if type(items) is Privates else items
