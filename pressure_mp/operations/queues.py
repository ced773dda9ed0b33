"""The operations that every kind of queue has."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

from ..effects import Operation
from ..encoding.codec import Codec
from ..engines.contract.address import Endpoint
from ..engines.contract.queues import (
    Dismiss,
    DismissReply,
    Enlist,
    EnlistReply,
    Exists,
    ExistsReply,
    GetDiscipline,
    GetDisciplineReply,
    GetUsers,
    GetUsersReply,
    IsClosed,
    IsClosedReply,
)
from ..engines.contract.replies import Missing, Outcome
from ..events import Destination
from ..exceptions import QueueDoesNotExistError, QueueMismatchError

R = TypeVar("R")


class QueueOperations:
    """A queue by its name. Each method is an operation: a generator for a driver. Nothing happens
    before it is driven.

    Every operation but ``exists`` raises QueueDoesNotExistError when there is no such queue.
    """

    #: The server that has the queue, for listeners. Given by the handle, if it knows.
    endpoint: Endpoint | None = None
    #: From objects to bytes and back. Given once the handle has its keys.
    codec: Codec[Any]

    def __init__(self, name: str, discipline: str) -> None:
        self.name = name
        self.discipline = discipline

    @cached_property
    def destination(self) -> Destination:
        """The queue, as listeners are told of it."""
        return Destination(self.name, self.discipline, self.codec.anonymous, self.endpoint)

    def look_for_rival(self) -> Operation[None]:
        """Check that no queue of another discipline has the same name, where that is possible.

        Raises QueueMismatchError.
        """
        reply: GetDisciplineReply = yield GetDiscipline()
        if reply is not Outcome.MISSING:
            raise self._mismatch("discipline", reply, self.discipline)

    def exists(self) -> Operation[bool]:
        """Tell whether the queue was created and not deleted."""
        reply: ExistsReply = yield Exists()
        return reply

    def closed(self) -> Operation[bool]:
        """Tell whether the queue was shut down."""
        reply: IsClosedReply = yield IsClosed()
        return self._found(reply)

    def enlist(self, user: str) -> Operation[None]:
        """Note that a process uses this anonymous queue."""
        reply: EnlistReply = yield Enlist(user)
        self._found(reply)

    def users(self) -> Operation[list[str]]:
        """Return the processes that use this anonymous queue."""
        reply: GetUsersReply = yield GetUsers()
        return self._found(reply)

    def dismiss(self, users: list[str]) -> Operation[int]:
        """Note that processes no longer use this anonymous queue; it is deleted with the last one.

        Returns how many are left.
        """
        reply: DismissReply = yield Dismiss(tuple(users))
        return self._found(reply)

    def _found(self, reply: R | Missing) -> R:
        """Return a reply, which says that the queue exists; raise QueueDoesNotExistError if it says
        no."""
        if reply is Outcome.MISSING:
            raise self._missing()
        return reply

    def _missing(self) -> QueueDoesNotExistError:
        return QueueDoesNotExistError(f"queue {self.name!r} does not exist")

    def _mismatch(self, what: str, have: str, wanted: object) -> QueueMismatchError:
        return QueueMismatchError(f"queue {self.name!r} exists with {what} {have}, not {wanted}")
