"""Connections that a program has of its own, with what other libraries have around them."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any, NamedTuple, TypeVar

from ..exceptions import ArgumentTypeError

C = TypeVar("C")


class Wanted(NamedTuple):
    """The classes of the connections of one kind of database, and the library that has them."""

    kinds: tuple[type, ...]
    library: str


def unwrap(connection: Any, wanted: Wanted) -> Any:
    """Return the connection of the wanted kind within the one of SQLAlchemy or Django, or itself.
    Raises ArgumentTypeError.

    A connection of SQLAlchemy without a transaction begins one, as it does for any other statement:
    otherwise its ``commit()`` would do nothing.
    """
    if isinstance(connection, wanted.kinds):
        return connection
    found = connection
    if callable(getattr(found, "get_bind", None)):  # a session of SQLAlchemy
        if iscoroutinefunction(found.connection):
            raise ArgumentTypeError(
                f"connection is a {_kind(connection)}, whose connection has to be awaited: use "
                "connection=await session.connection() with the queues of pressure_mp.aio"
            )
        found = found.connection()
    found = getattr(found, "sync_connection", found)  # an asynchronous connection of SQLAlchemy
    if hasattr(found, "ensure_connection"):  # Django's
        found.ensure_connection()
        found = found.connection
    elif hasattr(found, "in_transaction") and hasattr(found, "begin"):  # SQLAlchemy's
        if not found.in_transaction():
            found.begin()
        found = found.connection.driver_connection
    if isinstance(found, wanted.kinds):
        return found
    inside = "" if found is connection else f" around a {_kind(found)}"
    raise ArgumentTypeError(
        f"connection is one of {wanted.library}, or of SQLAlchemy or Django over "
        f"{wanted.library}, not a {_kind(connection)}{inside}"
    )


def _kind(one: object) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"
