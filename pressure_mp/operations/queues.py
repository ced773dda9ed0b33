"""What the operations of every kind of queue have."""

from __future__ import annotations

from ..effects import MISSING, Call, Operation, Reply
from ..exceptions import QueueDoesNotExistError, QueueMismatchError


class QueueOperations:
    """A queue by its name. Each method is an operation: a generator for a driver. Nothing happens
    before it is driven.

    ``lease`` is in milliseconds. Every operation but ``exists`` raises QueueDoesNotExistError when
    there is no such queue.
    """

    def __init__(self, name: str, lease: int, discipline: str) -> None:
        self.name = name
        self.discipline = discipline
        self._lease = lease

    def look_for_rival(self) -> Operation[None]:
        """Where a queue of another discipline may have the same name: see that there is none.

        Raises QueueMismatchError.
        """
        reply: Reply = yield Call("kind")
        if reply[0] != MISSING:
            kind = reply[1].decode(errors="replace")
            raise self._mismatch("discipline", kind, self.discipline)

    def _mismatch(self, what: str, have: str, wanted: object) -> QueueMismatchError:
        return QueueMismatchError(f"queue {self.name!r} exists with {what} {have}, not {wanted}")

    def exists(self) -> Operation[bool]:
        """Whether the queue was created and not deleted."""
        reply: Reply = yield Call("exists")
        return bool(reply[1])

    def enlist(self, user: str) -> Operation[None]:
        """Note that a process uses this anonymous queue."""
        reply: Reply = yield Call("enlist", (user,))
        self._check(reply)

    def users(self) -> Operation[list[str]]:
        """The processes that use this anonymous queue."""
        reply: Reply = yield Call("users")
        return [user.decode() for user in self._check(reply)[1]]

    def dismiss(self, users: list[str]) -> Operation[int]:
        """Note that processes no longer use this anonymous queue; it goes with the last one.

        Answers how many are left.
        """
        reply: Reply = yield Call("dismiss", tuple(users))
        return int(self._check(reply)[1])

    def _check(self, reply: Reply) -> Reply:
        if reply[0] == MISSING:
            raise QueueDoesNotExistError(f"queue {self.name!r} does not exist")
        return reply
