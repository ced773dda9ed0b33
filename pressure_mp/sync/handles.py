"""What all handles of threads share: an attachment to their queue, which may be pickled."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..engines.contract.levels import Level
from ..engines.contract.queues import How
from ..handles.attachment import Attachment, Traits
from ..hidden import hide_in
from ..identity.client import client_id

if TYPE_CHECKING:
    from typing_extensions import Self

AnyHandle = TypeVar("AnyHandle", bound="Handle")


class Handle:
    """One object that refers to a queue. Threads may share it; it may be pickled."""

    _at: Attachment

    # The traits of the class's queues.
    _make_operations: Callable[[str], Any]
    _levels: tuple[Level, ...] = (Level.ITEMS,)
    _refuses_negative_timeouts = False

    #: How the constructor opens the queue, and whether the first use does it instead.
    _opens = How.OPEN, False

    @classmethod
    def _insist(cls, how: How, *args: Any, **options: Any) -> Self:
        """Make a handle as the class itself does, but open the queue in this way."""
        return make(cls, how, False, *args, **hide_in(options))

    def _traits(self) -> Traits:
        cls = type(self)
        return Traits(
            cls.__name__, cls._make_operations, cls._levels, cls._refuses_negative_timeouts
        )

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

    def exists(self) -> bool:
        """Whether the queue exists. Never waits (specification: Exists)."""
        found: bool = self._at.run(self._at.operations.exists())
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self.url}>"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("__orig_class__", None)  # of Queue[int](): what it names may not be picklable
        return state

    def __copy__(self) -> Self:
        """Make another handle to the queue, as a pickle does."""
        copied = type(self).__new__(type(self))
        copied.__setstate__({**self.__getstate__(), "_at": copy.copy(self._at)})
        return copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._at.begin(self._traits())


def make(
    cls: type[AnyHandle], how: How, opens_later: bool, *args: Any, **options: Any
) -> AnyHandle:
    """Make a handle as ``cls(...)`` does, but open the queue in this way; with ``opens_later``, at
    the first use of the handle, and do no I/O now."""
    handle = cls.__new__(cls)
    handle._opens = how, opens_later
    cls.__init__(handle, *args, **hide_in(options))
    del handle._opens
    return handle


def attachment_of(handle: Handle) -> Any:
    """The attachment of a handle, of which the handle of asyncio to the same queue is made, too."""
    return handle._at
