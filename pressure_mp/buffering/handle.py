"""A handle to a queue, as its buffers see it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from ..background.presence import Presence
from ..drivers import Watch
from ..effects import AnyOperation
from ..encoding.codec import Codec
from ..engines.contract.address import Address
from ..engines.contract.session import Binding, Engine, Options, Session
from ..operations.objects import ObjectOperations

T = TypeVar("T")


class FetchedAhead(Protocol):
    """The items that are here and at the broker, in flight."""

    #: Seconds for which one who must know what is here waits, at most, for a thread that is at it.
    patience: float

    def __len__(self) -> int: ...

    def give_back(self, handle: BufferedHandle, patience: float = 0.0) -> None:
        """They are queued again."""


class Incomings(FetchedAhead, Protocol):
    """What a handle gets items of."""

    def get(self, handle: BufferedHandle, block: bool, timeout: float | None) -> Any:
        """The next item."""

    def get_many(
        self,
        handle: BufferedHandle,
        number: int,
        block: bool,
        timeout: float | None,
        look: Callable[[], None] | None = None,
    ) -> list[Any]:
        """Up to so many of those that are here; and a ``look``."""

    def before_look(self, handle: BufferedHandle) -> None:
        """The broker is about to be asked how many items there are, or to drop all."""

    def reset(self) -> None:
        """In a forked child: what is here is the parent's."""


class BufferedHandle(Protocol):
    """What a buffer needs of the handle that it belongs to, to which a buffer holds no reference
    of its own but while it has something to send."""

    _address: Address
    _binding: Binding | None
    _codec: Codec[Any]
    _eof: bool
    _had_bound: bool
    _handle_closed: bool
    _options: Options
    _operations: ObjectOperations

    @property
    def name(self) -> str:
        """The queue's name."""

    @property
    def url(self) -> str:
        """The broker's address."""

    @property
    def _here(self) -> Presence:
        """This process in the queue."""

    def _check_open(self) -> None:
        """Raises HandleClosedError."""

    def _while_open(self) -> AbstractContextManager[None]:
        """Check the handle during a call that waits. Raises HandleClosedError."""

    def _run_at_once(self, operation: AnyOperation[T], watch: Watch | None = None) -> T:
        """Run an operation on the queue, whatever was put and is not yet sent."""

    def _attached(self) -> Binding:
        """The queue, which this process uses from now on, if it did not before."""

    def _session(self) -> Session:
        """Begin an operation. Does no I/O once this process uses the queue."""

    def _run_on(self, session: Session, operation: AnyOperation[T]) -> T:
        """Run it on a session, which ends with it; whatever was put and is not yet sent."""

    def _putting(self, operation: AnyOperation[T]) -> T:
        """Run an operation that puts something."""

    def _get_at_once(self, block: bool, timeout: float | None) -> Any:
        """The next item of the broker, whatever was read ahead; what was put before is settled."""

    def _get_many_at_once(
        self, limit: int, block: bool, timeout: float | None, look: Callable[[], None] | None
    ) -> list[Any]:
        """The next items of the broker, and a ``look`` at it."""

    def _receive(self, claim: Any) -> Any:
        """What is there, as it is."""

    def _accept_received(self, received: Any, claim: Any) -> Any:
        """The object in that."""

    def _handing_out(self, receive: Callable[[Any], T]) -> T:
        """What ``receive`` returns; what ends this early gives it back."""

    def _settle(self, end: float | None = None) -> None:
        """What was put is where it can be got, as far as there is space."""

    def _put_at_once(self) -> None:
        """From now on puts go to the broker, and not into a buffer."""

    def _space(self, incoming: FetchedAhead | None) -> float:
        """How many items there is space for."""

    def _bind(self, engine: Engine, options: Options | None = None) -> Binding:
        """The queue, as an engine sees it."""
